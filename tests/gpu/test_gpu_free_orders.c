/* test_gpu_free_orders.c - objects may be freed in any order, even at the end of the program after
 * the CUDA runtime has shut down. Exits with 77 if there is no GPU. Also compiled for the imitated
 * GPU of tests/simt. */
#include <cuda_runtime_api.h>

#include "free_orders.h"

static struct freed_objects left;

/* Registered with atexit before CUDA is first used, so it runs after CUDA's own shutdown. */
static void free_what_is_left(void) {
  if (left.decoder != NULL) freed_objects_end(&left);
}

/* Tests every 29th of the 5,040 orders, because creating a decoder on a GPU takes 0.1 s.
 * tests/decode/test_free_orders.c tests all orders on the CPU. */
static void test_many_orders(void **state) {
  (void)state;
  test_free_orders("cuda", 29);
}

/* Enough orders that each object is freed before each other one. */
static void test_small(void **state) {
  (void)state;
  test_free_orders("cuda", 839);
}

static void test_end_of_program(void **state) {
  (void)state;
  wf_symbols *words = random_scorer_words();
  left = freed_objects_make("cuda", words);
  freed_objects_use(&left);
  wf_symbols_free(words);
}

int main(int argc, char **argv) {
  if (atexit(free_what_is_left) != 0) return 1;
  if (test_no_gpu()) return 77;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_orders),
                                     cmocka_unit_test(test_end_of_program)};
  const struct CMUnitTest small[] = {cmocka_unit_test(test_small),
                                     cmocka_unit_test(test_end_of_program)};
  if (argc > 1) return cmocka_run_group_tests(small, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
