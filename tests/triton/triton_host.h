/* triton_host.h - plays the part of Triton Inference Server in one process: it defines the
 * functions of the server that the backend of triton/ calls, and calls the backend as the server
 * does. For tests without a server, also under sanitizers. One backend and one model at a time. */
#ifndef TESTS_TRITON_HOST_H
#define TESTS_TRITON_HOST_H

#include "triton_api.h"
#include "warpfst_all.h"

/* A request. Zeros: no correlation id, no scores, no boosts. */
typedef struct host_request {
  uint64_t id;
  const char *text_id; /* in place of a number */
  bool starts, ends;
  wf_scores scores;       /* float32; stride = num_columns */
  const char *boosts;     /* one phrase a line; NULL: none */
  bool boosts_in_tensor;  /* not in a parameter */
  const char *outputs[8]; /* up to the first NULL; none: all */
  bool in_pieces;         /* tensors come in two buffers each */
} host_request;

typedef struct host_output {
  char name[16];
  TRITONSERVER_DataType type;
  int64_t shape[4];
  uint32_t num_dims;
  uint64_t num_bytes;
  void *data; /* host_free_responses frees it */
} host_output;

typedef struct host_response {
  bool sent;
  char error[512]; /* "": none */
  char flags[64];  /* the response parameter `flags`; "": not set */
  host_output outputs[8];
  uint32_t num_outputs;
} host_response;

/* Loads a model: `json` is its configuration, `folder` holds the folder "1" of its version. Returns
 * NULL and the reason if the backend refuses it. */
typedef struct triton_host triton_host;
triton_host *host_open(const char *json, const char *folder, char reason[512]);
void host_close(triton_host *host);
/* Executes a batch, at most 64 requests, and fills in responses[count]. */
void host_execute(triton_host *host, const host_request *requests, uint32_t count,
                  host_response *responses);
void host_free_responses(host_response *responses, uint32_t count);
/* The output with this name; NULL: none. */
const host_output *host_output_of(const host_response *response, const char *name);
/* The value of a metric, whose labels must be those of the model; NaN: there is none. */
double host_metric(const char *name);

/* Lets the call number n (1, 2, ...) of the server's functions from now on fail; 0: none. Returns
 * how many calls there were since the last call of this. Clean-up functions do not count. */
int host_fail_at(int n);
/* Number of warnings in the server's log since the last call of this; `last`: their last one. */
int host_warnings(char last[512]);
/* Number of errors, requests, responses and metrics that exist; 0 after host_close if the backend
 * released them all. */
int host_num_alive(void);

#endif
