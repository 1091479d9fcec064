/* warpfst_all.h - every public header. */
#ifndef WARPFST_ALL_H
#define WARPFST_ALL_H

#include "warpfst.h"
#include "warpfst_compat.h"
#include "warpfst_fst.h"
#include "warpfst_generation.h"
#include "warpfst_graph.h"
#include "warpfst_io.h"
#include "warpfst_lattice.h"
#include "warpfst_lm.h"
#include "warpfst_ops.h"
#include "warpfst_python.h"
#include "warpfst_transducer.h"
#endif /* WARPFST_ALL_H */
