/* fine */
#include "cli.h"
