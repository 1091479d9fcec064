/* fine */
#include "base/base.h"
#include "warpfst.h"
#include <math.h>
