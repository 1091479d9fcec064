# The host side and the kernels of the GPU backend, on the imitated GPU of this folder with blocks, warps and barriers: runs everywhere.
# Included by tests/CMakeLists.txt, with paths as there.
file(GLOB WARPFST_SIMT_H CONFIGURE_DEPENDS
  simt/*.h ${WARPFST_CUDA_SRC}/*/*.h ${WARPFST_CUDA_SRC}/*/*.cuh ${WARPFST_CUDA_SRC}/search/instances/*.cuh)
set(WARPFST_SIMT_FLAGS -std=c++17 -g1 -w -fno-strict-aliasing -ffp-contract=off -fPIC)
# Small tables and limits of the kernels, which tests can fill.
list(APPEND WARPFST_SIMT_FLAGS
  -DWF__BACKWARD_BITS=5 -DWF__BACKWARD_LARGE_BITS=7 -DWF__BACKWARD_WINDOW=64 -DWF__BACKWARD_MARKED=7 -DWF__BACKWARD_HUB=3 -DWF__BACKWARD_FEW=5
  -DWF__FINGERPRINT_BITS=5 -DWF__LANE_LISTED=256 -DWF__LANE_MEMO_BITS=5
  -DWF__MIN_NAME_BITS=14 -DWF__MIN_FALLS=100 -DWF__MIN_ROUNDS=100 -DWF__FOLLOWED=3 -DWF__HUGE_ARCS=80 -DWF__AT_ONCE=2
  -DWF__WIDE_TOKENS=38 -DWF__WIDE_CHUNK=32 -DWF__LANE_ENTRIES=40 -DWF__LANE_MORE_ENTRIES=25 -DWF__LANE_TOKENS=64 -DWF__LANE_CANDIDATES=150
  -DWF__BIAS_THREADS=64 -DWF__BIAS_LISTED=5 -DWF__BIAS_LEVELS=2)
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
  WF__TRANSDUCER_SLOTS=40 WF__TRANSDUCER_FRAMES=23 WF__COPY_PIECE=100 WF__COPY_LEAST=3
  WF__DEVICE_LANES=7 WF__DEVICE_UTTERANCES=17 WF__DEVICE_OFFERS=10 WF__TABLE_CONTEXTS=50 WF__LANE_CANDIDATES=150 WF__LANE_MORE_ENTRIES=25
  WF__BIAS_THREADS=64 WF__BIAS_LISTED=5 WF__BIAS_LEVELS=2
  WF__LOADING_FRAMES=31 WF__LOADING_BYTES=2000 WF__LOADING_PIECE=5)
if(WARPFST_SANITIZE STREQUAL "thread") # kernels run on stacks of their own, which it cannot follow
  list(APPEND WARPFST_SIMT_FLAGS -O1)
  set_source_files_properties(simt/simt.c simt/simt_memory.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
elseif(WARPFST_SANITIZE) # compiling with optimization takes longer than the tests save, except for the models' kernels
  list(APPEND WARPFST_SIMT_FLAGS -O0 -fsanitize=${WARPFST_SANITIZE})
else() # -O1 takes twice as long to compile, and the tests are not faster, except for the models' kernels
  list(APPEND WARPFST_SIMT_FLAGS -Og)
  set_source_files_properties(simt/simt.c PROPERTIES COMPILE_OPTIONS -O2) # threads change here all the time
endif()
# The whole GPU backend: every test of it links the same objects.
file(GLOB WARPFST_SIMT_C CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/plan/*.c ${WARPFST_CUDA_SRC}/*.c ${WARPFST_CUDA_SRC}/*/*.c
  ${WARPFST_CUDA_SRC}/search/instances/*.c)
file(GLOB WARPFST_SIMT_CU CONFIGURE_DEPENDS
  ${WARPFST_CUDA_SRC}/search/*.cu ${WARPFST_CUDA_SRC}/search/instances/*.cu ${WARPFST_CUDA_SRC}/rnn/*.cu
  ${WARPFST_CUDA_SRC}/transducer/*.cu ${WARPFST_CUDA_SRC}/generation/*.cu ${WARPFST_CUDA_SRC}/compose/*.cu ${WARPFST_CUDA_SRC}/fstops/*.cu)
add_custom_target(simt_tests)
# Adds a program of a kind of table.cmake from its sources, the remaining arguments, and the backend; if kernels are among
# the sources, from these without the backend.
function(add_simt_program name kind)
  set(objects)
  set(profile)
  set(profile_flags)
  set(prefix simt)
  set(sources)
  set(test ${ARGN})
  set(all_kernels ${ARGN})
  list(FILTER test EXCLUDE REGEX "[.]cu$")
  list(FILTER all_kernels INCLUDE REGEX "[.]cu$")
  if(NOT all_kernels)
    set(sources ${WARPFST_SIMT_C})
    set(all_kernels ${WARPFST_SIMT_CU})
  endif()
  if(kind STREQUAL "simt_64kb")
    set(profile WF__SHARED_KB=64 WF__HAS_CLUSTERS=0)
    list(TRANSFORM profile PREPEND -D OUTPUT_VARIABLE profile_flags)
    set(prefix simt64)
  endif()
  foreach(kernels ${all_kernels})
    get_filename_component(object ${kernels} NAME_WE)
    get_filename_component(kernels ${kernels} ABSOLUTE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${prefix}_${object}.o)
    list(APPEND objects ${object})
    get_property(made GLOBAL PROPERTY made_${object})
    if(NOT made)
      set_property(GLOBAL PROPERTY made_${object} ON)
      set(optimized)
      if(kernels MATCHES "/(rnn|slice|transducer)_kernels[.]cu$")
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
    add_dependencies(${shared} warpfst_build_id)
    list(APPEND compiled ${shared})
  endif()
  add_executable(${name} ${test} $<TARGET_OBJECTS:${shared}> ${objects})
  foreach(target ${compiled})
    target_include_directories(${target} BEFORE PRIVATE fake_cuda simt ${PROJECT_SOURCE_DIR}/src
                               ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/generated)
    target_compile_definitions(${target} PRIVATE FAKE_CUDA SIMT $<$<STREQUAL:${WARPFST_SIMT},more>:SIMT_MORE> ${profile} ${WARPFST_SIMT_SIZES})
    target_compile_options(${target} PRIVATE ${WARPFST_QUICK} -include ${CMAKE_CURRENT_SOURCE_DIR}/simt/more_runtime.h)
  endforeach()
  set_source_files_properties(fake_cuda/fake_cuda.c PROPERTIES COMPILE_DEFINITIONS FAKE_CUDA_ITSELF)
  target_link_libraries(${name} PRIVATE warpfst_testing warpfst_flags stdc++)
  if(WARPFST_HAS_CUDA AND NOT sources) # else the linker would take the real backend from the library
    target_link_options(${name} PRIVATE LINKER:--defsym,wf__cuda_register=0)
  endif()
  add_dependencies(simt_tests ${name})
endfunction()
