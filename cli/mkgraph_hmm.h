/* mkgraph_hmm.h - `warpfst mkgraph hmm`. */
#ifndef WARPFST_CLI_MKGRAPH_HMM_H
#define WARPFST_CLI_MKGRAPH_HMM_H

int mkgraph_hmm(int argc, char **argv);

#endif
