/* test_free_orders.c - objects on the CPU may be freed in any order. */
#include "free_orders.h"

static void test_every_order(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  test_free_orders("cpu", 11); /* 11 does not divide the number of orders */
#else
  test_free_orders("cpu", 1);
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
