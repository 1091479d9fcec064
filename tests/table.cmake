# The tests that have settings, a row for each; CMakeLists.txt adds them. The other test_*.c of the folders that mirror
# src/ have none.
#
#   kind     unit       a test_*.c in a folder that mirrors one of src/
#            fake_gpu   the host side of the GPU decoder with the imitated CUDA of fake_cuda/
#            fake_64kb  a program of kind fake_gpu again, with the shared memory of the smallest GPUs
#            simt       host side and kernels on the imitated GPU of simt/
#            simt_64kb  the same on a GPU with 64 KB of shared memory and without clusters, with WARPFST_SIMT=more alone
#            soak       the soak test on the imitated GPU: a few seeds agree, and a planted difference is found
#   source   of kind simt: linked with the whole GPU backend, or, if it names kernels (.cu), with these alone
#   plain, address, thread: SEEDS:NAMES in builds without sanitizers, with the address sanitizer and with the thread
#            sanitizer. SEEDS is WARPFST_TEST_SEEDS (kind simt: with WARPFST_SIMT=more eight times as many, or MORE if it
#            is SEEDS/MORE; -: the test has its own number). NAMES is a pattern of the functions that run (with SIMT, the
#            large ones are smaller).
#            none: the test is left out
#   cost     CTest starts tests with a high cost first, so that no long test runs alone at the end
set(WARPFST_TEST_COLUMNS name kind source plain address thread cost)
set(WARPFST_TEST_ROWS
  # name                          kind       source                                              plain            address       thread        cost
  # The library.
  "test_compose                  unit       -                                                   -                -             -             10"
  "test_compose_rows             unit       -                                                   -                -             -             10"
  "test_hmm                      unit       -                                                   -                -             -             10"
  "test_ngram_scorer             unit       -                                                   -                -             -             10"
  "test_pool                     unit       -                                                   -                -             -             10"
  "test_threads                  unit       -                                                   -                -             -             -"
  "test_transducer_scorers       unit       -                                                   -                -             20            -"
  # The host side of the GPU decoder.
  "test_fake_gpu                 fake_gpu   gpu/test_gpu_host.c                                 -                1             1             15"
  "test_fake_gpu_64kb            fake_64kb  test_fake_gpu                                       1                none          none          -"
  "test_fake_gpu_scorer          fake_gpu   gpu/test_gpu_scorer.c                               -                -             -             15"
  # The imitated GPU, and the kernels of a benchmark.
  "test_simt                     simt       simt/test_simt.c,simt/test_simt_kernels.cu          1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_lm_fetch            simt       simt/test_lm_fetch.c,../src/cuda/bench/lm_fetch.cu  10:test_kernels  1:test_small  3:test_small  20"
  # Decoding.
  "test_simt_decode              simt       gpu/test_gpu_decode.c                               1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_ctc                 simt       gpu/test_gpu_ctc.c                                  5/40:test_*      1:test_small  3:test_small  20"
  "test_simt_ctc_words           simt       gpu/test_gpu_ctc_words.c                            8/128:test_*     1:test_small  3:test_small  20"
  "test_simt_scorer              simt       gpu/test_gpu_scorer.c                               1:test_kernels   1:test_races  3:test_small  20"
  "test_simt_stream              simt       gpu/test_gpu_stream.c                               1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_free_orders         simt       gpu/test_gpu_free_orders.c                          1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_words               simt       gpu/test_gpu_words.c                                1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_stream_lattice      simt       gpu/test_gpu_stream_lattice.c                       3:test_kernels   1:test_small  3:test_small  20"
  "test_simt_lattice             simt       gpu/test_gpu_lattice.c                              1:test_kernels   1:test_races  3:test_small  20"
  "test_simt_host                simt       gpu/test_gpu_host.c                                 1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_several             simt       gpu/test_gpu_several.c                              1:test_*         1:test_small  3:test_small  20"
  # Operations on fsts. Three seeds of `ops` compare too little.
  "test_simt_compose             simt       gpu/test_gpu_compose.c                              1:test_kernels   1:test_races  3:test_small  20"
  "test_simt_ops                 simt       gpu/test_gpu_ops.c                                  5:test_*         6:test_small  3:test_small  20"
  "test_simt_determinize         simt       gpu/test_gpu_determinize.c                          20:test_*        1:test_small  3:test_small  20"
  "test_simt_minimize            simt       gpu/test_gpu_minimize.c                             150:test_*       1:test_small  3:test_small  20"
  "test_simt_rmepsilon           simt       gpu/test_gpu_rmepsilon.c                            150:test_*       1:test_small  3:test_small  20"
  "test_simt_sparse              simt       gpu/test_gpu_sparse.c                               6/96:test_*      1:test_small  3:test_small  20"
  "test_simt_chain               simt       gpu/test_gpu_chain.c                                5:test_*         1:test_small  3:test_small  20"
  # Recurrent models and transducers, and the Triton backend with them.
  "test_simt_rnn                 simt       gpu/test_gpu_rnn.c                                  1:test_kernels   1:test_races  3:test_small  20"
  "test_simt_slices              simt       gpu/test_gpu_slices.c                               2:test_kernels   1:test_small  1:test_small  20"
  "test_simt_rnn_interrupt       simt       gpu/test_gpu_rnn_interrupt.c                        1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_transducer          simt       gpu/test_gpu_transducer.c                           1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_transducer_errors   simt       gpu/test_gpu_transducer_errors.c                    1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_transducer_log_probs simt      gpu/test_gpu_transducer_log_probs.c                 1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_transducer_search   simt       gpu/test_gpu_transducer_search.c                    1:test_kernels   1:test_small  3:test_small  20"
  "test_simt_transducer_words    simt       gpu/test_gpu_transducer_words.c                     2:test_kernels   1:test_small  3:test_small  20"
  "test_simt_transducer_scorers  simt       gpu/test_gpu_transducer_scorers.c                   3:test_kernels   3:test_small  3:test_small  20"
  "test_simt_triton              simt       triton/test_triton_backend.c                        1:test_kernels   1:test_small  3:test_small  20"
  # Generators of tokens.
  "test_simt_bias                simt       gpu/test_gpu_bias.c                                 1:test_*         1:test_small  3:test_small  20"
  # Graphs, failing calls and the soak. With 4 seeds, every CUDA call of decoding fails once, which takes 110 s.
  "test_simt_graph               simt       gpu/test_gpu_graph.c                                2:test_*         1:test_small  3:test_small  20"
  "test_simt_faults              simt       simt/test_faults.c                                  1:test_kernels   none          none          20"
  "test_simt_soak                soak       soak/test_soak.sh                                   -                4             4             20"
  # A GPU with less shared memory.
  "test_simt_decode_64kb         simt_64kb  gpu/test_gpu_decode.c                               1:test_small     none          none          20"
  "test_simt_scorer_64kb         simt_64kb  gpu/test_gpu_scorer.c                               1:test_small     none          none          20"
  "test_simt_stream_64kb         simt_64kb  gpu/test_gpu_stream.c                               1:test_small     none          none          20"
  "test_simt_lattice_64kb        simt_64kb  gpu/test_gpu_lattice.c                              1:test_small     none          none          20"
  "test_simt_compose_64kb        simt_64kb  gpu/test_gpu_compose.c                              1:test_small     none          none          20")
# The scripts of cli/ that need something, or that run with sanitizers, too, or only then: those that read hostile input, all
# formats and the ABI. The server of Triton is built without sanitizers.
set(WARPFST_SCRIPT_ROWS
  # name                   needs   sanitizers
  "test_abi               -       yes"
  "test_abi_release       -       yes"
  "test_bench_decode      bench   -"
  "test_bench_programs    bench   -"
  "test_decode_bad_input  -       only"
  "test_formats           -       only"
  "test_hostile_text      -       only"
  "test_lattice           -       only"
  "test_outputs           -       only"
  "test_paths             -       only"
  "test_triton            triton  -"
  "test_triton_grpc       triton  -")
