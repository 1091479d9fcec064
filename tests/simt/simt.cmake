# The host side and the kernels of the GPU backend, on the imitated GPU of this folder with blocks, warps and barriers: runs everywhere.
# Included by tests/CMakeLists.txt, with paths as there.
file(GLOB WARPFST_SIMT_H CONFIGURE_DEPENDS
  simt/*.h ${WARPFST_CUDA_SRC}/*/*.h ${WARPFST_CUDA_SRC}/*/*.cuh ${WARPFST_CUDA_SRC}/search/instances/*.cuh)
set(WARPFST_SIMT_FLAGS -std=c++17 -g1 -w -fno-strict-aliasing -ffp-contract=off -fPIC)
# Small tables and limits of the kernels, which tests can fill.
list(APPEND WARPFST_SIMT_FLAGS
  -DWF__BACKWARD_BITS=5 -DWF__BACKWARD_LARGE_BITS=7 -DWF__BACKWARD_WINDOW=64 -DWF__BACKWARD_MARKED=7 -DWF__BACKWARD_HUB=3 -DWF__BACKWARD_FEW=5
  -DWF__FINGERPRINT_BITS=5 -DWF__LANE_LISTED=256 -DWF__LANE_MEMO_BITS=5
  -DWF__MIN_NAME_BITS=14 -DWF__MIN_FALLS=100 -DWF__MIN_ROUNDS=100)
# The models' kernels spend half of their time in fmaf unless the CPU has it as an instruction.
include(CheckCSourceRuns)
if(NOT CMAKE_CROSSCOMPILING)
  set(CMAKE_REQUIRED_FLAGS -mfma)
  check_c_source_runs("int main(void) { return !__builtin_cpu_supports(\"fma\"); }" WARPFST_HAS_FMA)
  unset(CMAKE_REQUIRED_FLAGS)
endif()
if(WARPFST_HAS_FMA)
  list(APPEND WARPFST_SIMT_FLAGS -mfma)
endif()
# The same for the host side. The variables are in simt/table_sizes.h; tests can change them.
set(WARPFST_SIMT_SIZES
  WF__SPARSE_SLOTS=simt_table_sizes.sparse_slots
  WF__DET_ROOM=simt_table_sizes.det_room WF__DET_TIMES=0 WF__DET_ITEMS=simt_table_sizes.det_items
  WF__LANE_LISTED=256 WF__LANE_MEMO_BITS=5 WF__LONG_LIST_BYTES=1024 WF__UPLOAD_STATES=23
  WF__RNN_ROWS=23 WF__RNN_NORM_COLUMNS=48 WF__RNN_SCORING_BITS=5
  WF__TRANSDUCER_SLOTS=40 WF__TRANSDUCER_FRAMES=23)
if(WARPFST_SANITIZE STREQUAL "thread") # kernels run on stacks of their own, which it cannot follow
  list(APPEND WARPFST_SIMT_FLAGS -O1)
  set_source_files_properties(simt/simt.c simt/simt_memory.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
elseif(WARPFST_SANITIZE) # compiling with optimization takes longer than the tests save, except for the models' kernels
  list(APPEND WARPFST_SIMT_FLAGS -O0 -fsanitize=${WARPFST_SANITIZE})
else() # -O2 takes half as long again to compile, and the tests are not faster
  list(APPEND WARPFST_SIMT_FLAGS -O1)
endif()
# Adds a program of a test, host sources and kernels (the remaining arguments). If WARPFST_SIMT_KB is set, it imitates a
# GPU with so many KB of shared memory and without clusters.
function(add_simt_program name test sources)
  set(objects)
  set(profile)
  set(profile_flags)
  if(WARPFST_SIMT_KB)
    set(profile WF__SHARED_KB=${WARPFST_SIMT_KB} WF__HAS_CLUSTERS=0)
    list(TRANSFORM profile PREPEND -D OUTPUT_VARIABLE profile_flags)
    set(name ${name}_${WARPFST_SIMT_KB}kb)
  endif()
  foreach(kernels ${ARGN})
    get_filename_component(object ${kernels} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/simt${WARPFST_SIMT_KB}_${object}.o)
    list(APPEND objects ${object})
    get_property(made GLOBAL PROPERTY made_${object})
    if(NOT made)
      set_property(GLOBAL PROPERTY made_${object} ON)
      set(optimized)
      if(kernels MATCHES "/(rnn|transducer)_kernels[.]cu$")
        set(optimized -O1)
      endif()
      add_custom_command(OUTPUT ${object} VERBATIM COMMAND_EXPAND_LISTS DEPENDS ${kernels} ${WARPFST_SIMT_H}
        COMMAND ${CMAKE_C_COMPILER} -x c++ ${WARPFST_SIMT_FLAGS} ${optimized} ${profile_flags}
                -include ${CMAKE_CURRENT_SOURCE_DIR}/simt/more_runtime.h
                -I${CMAKE_CURRENT_SOURCE_DIR}/simt -I${CMAKE_CURRENT_SOURCE_DIR}/fake_cuda
                -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src -c ${kernels} -o ${object})
    endif()
  endforeach()
  string(MD5 shared "${sources}${profile}") # programs with the same sources share their objects
  set(shared simt_objects_${shared})
  set(compiled ${name})
  if(NOT TARGET ${shared})
    add_library(${shared} OBJECT simt/simt.c simt/simt_memory.c simt/table_sizes.c fake_cuda/fake_cuda.c ${sources})
    target_link_libraries(${shared} PRIVATE warpfst_flags)
    list(APPEND compiled ${shared})
  endif()
  add_executable(${name} ${test} $<TARGET_OBJECTS:${shared}> ${objects})
  foreach(target ${compiled})
    target_include_directories(${target} BEFORE PRIVATE fake_cuda simt ${PROJECT_SOURCE_DIR}/src
                               ${PROJECT_SOURCE_DIR}/include)
    target_compile_definitions(${target} PRIVATE WARPFST_CUDA FAKE_CUDA SIMT ${profile} ${WARPFST_SIMT_SIZES})
    target_compile_options(${target} PRIVATE ${WARPFST_QUICK} -include ${CMAKE_CURRENT_SOURCE_DIR}/simt/more_runtime.h)
  endforeach()
  set_source_files_properties(fake_cuda/fake_cuda.c PROPERTIES COMPILE_DEFINITIONS FAKE_CUDA_ITSELF)
  target_link_libraries(${name} PRIVATE warpfst_testing warpfst_flags stdc++)
endfunction()
add_custom_target(simt_tests)
# Adds such a program as a test with `seeds` random seeds, with WARPFST_SIMT=more with four times as many.
function(add_simt_test name test sources seeds)
  add_simt_program(${name} ${test} "${sources}" ${ARGN})
  set(what test_kernels)
  if(name MATCHES "^test_simt_(ops|determinize|minimize|rmepsilon|sparse|chain|graph|several)$")
    set(what test_*) # all tests: the large ones are smaller with SIMT
  endif()
  if(WARPFST_SIMT_KB)
    set(name ${name}_${WARPFST_SIMT_KB}kb)
    set(what test_small)
  endif()
  if(WARPFST_SIMT STREQUAL "more")
    math(EXPR seeds "4 * ${seeds}")
  endif()
  if(WARPFST_SANITIZE STREQUAL "thread") # the first seeds have one, two and three threads
    set(what test_small)
    set(seeds 3)
  elseif(WARPFST_SANITIZE) # sanitizers make the tests several times slower
    set(what test_small)
    if(name MATCHES "^test_simt_(compose|lattice|rnn|scorer)$")
      set(what test_races)
    endif()
    set(seeds 1)
    if(name STREQUAL "test_simt_ops")
      set(seeds 6) # one seed compares too little
    elseif(name STREQUAL "test_simt_transducer_scorers")
      set(seeds 3)
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${name} ${what})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT WARPFST_TEST_SEEDS=${seeds} COST 20 LABELS simt)
  add_dependencies(simt_tests ${name})
endfunction()
set(WARPFST_SIMT_KERNELS ${CMAKE_CURRENT_SOURCE_DIR}/simt/test_simt_kernels.cu)
add_simt_test(test_simt simt/test_simt.c "" 1 ${WARPFST_SIMT_KERNELS})
add_simt_test(test_simt_lm_fetch simt/test_lm_fetch.c "" 20 ${WARPFST_CUDA_SRC}/bench/lm_fetch.cu)
# The whole GPU backend: every test of it links the same objects.
file(GLOB WARPFST_SIMT_C CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/plan/*.c ${WARPFST_CUDA_SRC}/*.c ${WARPFST_CUDA_SRC}/*/*.c
  ${WARPFST_CUDA_SRC}/search/instances/*.c)
file(GLOB WARPFST_SIMT_CU CONFIGURE_DEPENDS
  ${WARPFST_CUDA_SRC}/search/*.cu ${WARPFST_CUDA_SRC}/search/instances/*.cu ${WARPFST_CUDA_SRC}/rnn/*.cu
  ${WARPFST_CUDA_SRC}/transducer/*.cu ${WARPFST_CUDA_SRC}/compose/*.cu ${WARPFST_CUDA_SRC}/fstops/*.cu)
foreach(pair
    decode:2 scorer:1 stream:1 free_orders:1 words:2 stream_lattice:5 lattice:1 host:1 several:1
    compose:1 ops:6 determinize:40 minimize:300 rmepsilon:300 sparse:20 chain:10
    rnn:2 transducer:1 transducer_scorers:6 rnn_interrupt:1 graph:4)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 seeds)
  add_simt_test(test_simt_${name} gpu/test_gpu_${name}.c "${WARPFST_SIMT_C}" ${seeds} ${WARPFST_SIMT_CU})
endforeach()
# The backend for Triton Inference Server; its other tests do not depend on the device.
add_simt_test(test_simt_triton triton/test_triton_backend.c "${WARPFST_SIMT_C}" 1 ${WARPFST_SIMT_CU})
target_sources(test_simt_triton PRIVATE triton/triton_host.c ${WARPFST_TRITON_C})
target_include_directories(test_simt_triton PRIVATE ${PROJECT_SOURCE_DIR}/triton)
target_compile_definitions(test_simt_triton PRIVATE TRITON_DEVICE="cuda")
# The soak test of all of it (soak/): a few seeds agree, and a planted difference is found.
add_simt_program(simt_soak "${WARPFST_SOAK_C}" "${WARPFST_SIMT_C}" ${WARPFST_SIMT_CU})
add_test(NAME test_simt_soak COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/soak/test_soak.sh $<TARGET_FILE:simt_soak>)
set_tests_properties(test_simt_soak PROPERTIES COST 20 LABELS simt)
add_dependencies(simt_tests simt_soak)
if(WARPFST_SANITIZE)
  set_tests_properties(test_simt_soak PROPERTIES ENVIRONMENT WARPFST_TEST_SEEDS=4)
endif()
if(NOT WARPFST_SANITIZE)
  # With 4 seeds, every CUDA call of decoding fails once, which takes 110 s.
  add_simt_test(test_simt_faults simt/test_faults.c "${WARPFST_SIMT_C}" 1 ${WARPFST_SIMT_CU})
endif()
if(WARPFST_SIMT STREQUAL "more" AND NOT WARPFST_SANITIZE)
  set(WARPFST_SIMT_KB 64)
  foreach(test decode scorer stream lattice)
    add_simt_test(test_simt_${test} gpu/test_gpu_${test}.c "${WARPFST_SIMT_C}" 1 ${WARPFST_SIMT_CU})
  endforeach()
  add_simt_test(test_simt_compose gpu/test_gpu_compose.c "${WARPFST_SIMT_C}" 1 ${WARPFST_SIMT_CU})
  unset(WARPFST_SIMT_KB)
endif()
