/* estimate_discounts.c - the discounts of modified Kneser-Ney smoothing (Chen & Goodman 1998,
 * equation 26). With n_i n-grams of an adjusted count of i, Y = n_1 / (n_1 + 2 n_2) and
 *     D_i = i - (i + 1) Y n_(i+1) / n_i    for i = 1, 2, and 3, which stands for 3 or more
 * A small text may lack n-grams of a count, or its counts may give a discount that is not in
 * (0, i]. That order then has the fallback discounts. */
#include "lm/estimate/lm_estimate.h"

#include <stdio.h>
#include <string.h>

#include "base/callbacks.h"

static bool closed_form(const uint64_t *num_with, double *discount) {
  const double n1 = (double)num_with[1], y = n1 / (n1 + 2 * (double)num_with[2]);
  for (int i = 1; i <= 3; i++) {
    if (num_with[i] == 0) return false;
    discount[i] = i - (i + 1) * y * (double)num_with[i + 1] / (double)num_with[i];
    if (!(discount[i] > 0 && discount[i] <= i)) return false;
  }
  return true;
}

void wf__estimate_discounts(wf__estimate *e) {
  char orders[4 * WF_LM_MAX_ORDER] = "";
  for (int k = 1; k <= e->order; k++) {
    wf__estimate_order *order = &e->by_order[k];
    if (!closed_form(order->num_with, order->discount)) {
      memcpy(order->discount, e->fallback, sizeof order->discount);
      e->stats.fallback[k] = 1;
      const size_t used = strlen(orders);
      snprintf(orders + used, sizeof orders - used, "%s%d", used > 0 ? ", " : "", k);
    }
    e->stats.discount_1[k] = order->discount[1];
    e->stats.discount_2[k] = order->discount[2];
    e->stats.discount_3[k] = order->discount[3];
  }
  if (*orders != '\0')
    wf__log(WF_LOG_WARNING,
            "the text is small or repeats itself: the counts of n-grams of order %s give no "
            "discounts; discount_fallback %g,%g,%g is used",
            orders, e->fallback[1], e->fallback[2], e->fallback[3]);
}
