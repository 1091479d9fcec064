/* test_free_orders.c - objects on the CPU may be freed in any order. */
#include "free_orders.h"

static void test_every_order(void **state) {
  (void)state;
  test_free_orders("cpu", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
