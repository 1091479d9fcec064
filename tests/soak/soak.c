/* soak.c - the soak test of the GPU backend. Each seed gives a random task, which runs on the GPU
 * and on the CPU. At the first difference the program prints the seed and ends; the same seed gives
 * the same task again. Needs a GPU, or is built with the imitated GPU of tests/simt, which takes
 * thousands of times as long. */
#include "soak.h"
#include "watchdog.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum {
  PROGRESS_SECONDS = 10,
  STALL_SECONDS = 20, /* without progress: what the thread waits for is shown */
  HANG_STALLS = 3,    /* after so many stalls of all threads the program ends */
  MOST_THREADS = 256,
  USUAL_THREADS = 16, /* each thread may take 4 GB of the GPU */
  SHARES = 24
};

static const struct kind {
  const char *name;
  void (*run)(test_rng *rng, struct soak_counts *counts);
  uint32_t shares; /* of the seeds */
} kinds[] = {{"batches", soak_batches, 7},
             {"streams", soak_streams, 4},
             {"fsts", soak_fsts, 8},
             {"recurrent", soak_recurrent, 1},
             {"transducers", soak_transducers, 2},
             {"graphs", soak_graphs, 1},
             {"alignments", soak_alignments, 1}};
enum { NUM_KINDS = sizeof kinds / sizeof *kinds };

static struct {
  uint64_t first, most; /* first seed; number of seeds, 0: no limit */
  double seconds;       /* 0: no limit; negative: not given */
  double stall;         /* seconds without progress that are shown; 0: never */
  int threads, only;    /* 0: one per processor, USUAL_THREADS at most; -1: all kinds */
  bool plant, hang;
} options = {.first = 1, .seconds = -1, .stall = -1, .only = -1};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_seed, num_taken;
static _Atomic uint64_t num_utterances, num_operations, num_seeds, num_misfits;
static _Atomic int num_running;
static atomic_flag reported = ATOMIC_FLAG_INIT, planted = ATOMIC_FLAG_INIT;
static struct timespec began;
struct running {
  uint64_t seed;
  const char *kind; /* NULL: nothing is running */
  double since;     /* seconds after the start */
  double progress;  /* seconds after the start: the last note */
  bool is_shown;    /* the watchdog has shown this stall */
  char note[200];   /* the mutex protects all fields; report() reads those of its own thread */
};
static struct running
    running[MOST_THREADS + 1]; /* the last belongs to the main thread, which runs no task */
static _Thread_local struct running *now = &running[MOST_THREADS];

static double seconds_passed(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)(t.tv_sec - began.tv_sec) + (double)(t.tv_nsec - began.tv_nsec) * 1e-9;
}

void soak_note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  pthread_mutex_lock(&mutex);
  vsnprintf(now->note, sizeof now->note, format, args);
  now->progress = seconds_passed();
  now->is_shown = false;
  pthread_mutex_unlock(&mutex);
  va_end(args);
}

bool soak_plant(void) { return options.plant && !atomic_flag_test_and_set(&planted); }

/* Signal handler. A failed assertion prints what differs and aborts; a crash also ends here. The
 * first thread to arrive prints the report and ends the program; the others wait. */
static void report(int number) {
  char text[512];
  if (atomic_flag_test_and_set(&reported)) pause();
  const int size =
      snprintf(text, sizeof text, "\nseed %llu: %s: %s: %s\nagain: --seed=%llu --seeds=1\n",
               (unsigned long long)now->seed, now->kind != NULL ? now->kind : "start", now->note,
               number == SIGABRT ? "the result differs" : "crash", (unsigned long long)now->seed);
  if (write(STDOUT_FILENO, text, (size_t)size) < size) _exit(2);
  if (number != SIGABRT) watchdog_show_own_calls();
  _exit(1);
}

static int kind_of(uint64_t seed) {
  test_rng rng = {seed ^ 0x5eed};
  uint32_t drawn = test_below(&rng, SHARES);
  int kind = 0;
  while (drawn >= kinds[kind].shares) drawn -= kinds[kind++].shares;
  return kind;
}

/* Takes the next seed for this thread. Returns false if there is none. */
static bool take_seed(void) {
  const bool late = options.seconds > 0 && seconds_passed() >= options.seconds;
  pthread_mutex_lock(&mutex);
  const bool some = !late && (options.most == 0 || num_taken < options.most);
  now->kind = NULL;
  if (some) {
    while (options.only >= 0 && kind_of(next_seed) != options.only) next_seed++;
    now->seed = next_seed++;
    now->kind = kinds[kind_of(now->seed)].name;
    now->since = seconds_passed();
    num_taken++;
  }
  pthread_mutex_unlock(&mutex);
  return some;
}

static void *soak(void *mine) {
  struct soak_counts counts = {0}, before = {0};
  now = mine;
  while (take_seed()) {
    test_rng rng = {now->seed};
    soak_note("begins");
    if (options.hang)
      for (;;) pause();
    kinds[kind_of(now->seed)].run(&rng, &counts);
    num_utterances += counts.utterances - before.utterances;
    num_operations += counts.operations - before.operations;
    num_seeds++;
    before = counts;
  }
  num_running--;
  return NULL;
}

/* Counts utterances that did not fit the GPU and were decoded on the CPU, because these prove
 * little. */
static void count_misfits(void *user, wf_log_level level, const char *text) {
  (void)user, (void)level;
  if (strstr(text, "did not fit") != NULL) num_misfits++;
}

static void show_progress(void) {
  fprintf(stderr, "%.0f s: %llu seeds, %llu utterances, %llu operations\n", seconds_passed(),
          (unsigned long long)num_seeds, (unsigned long long)num_utterances,
          (unsigned long long)num_operations);
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < options.threads; i++) {
    const double seconds = seconds_passed() - running[i].since;
    if (running[i].kind != NULL && seconds >= PROGRESS_SECONDS)
      fprintf(stderr, "  seed %llu (%s) has run for %.0f s\n", (unsigned long long)running[i].seed,
              running[i].kind, seconds);
  }
  pthread_mutex_unlock(&mutex);
}

/* Shows each thread that made no progress for options.stall seconds, once a stall. Returns false if
 * no thread has made progress for HANG_STALLS times as long. */
static bool watch(const pthread_t *threads) {
  bool any_new = false;
  double last = 0;
  for (int i = 0; i < options.threads; i++) {
    pthread_mutex_lock(&mutex);
    const struct running r = running[i];
    const bool stalls = r.kind != NULL && seconds_passed() - r.progress >= options.stall;
    running[i].is_shown |= stalls;
    pthread_mutex_unlock(&mutex);
    if (r.kind != NULL && r.progress > last) last = r.progress;
    if (!stalls || r.is_shown) continue;
    fprintf(stderr, "no progress for %.0f s: thread %d, seed %llu (%s): %s; it is in\n",
            seconds_passed() - r.progress, i, (unsigned long long)r.seed, r.kind, r.note);
    watchdog_show_calls(threads[i]);
    any_new = true;
  }
  if (any_new) watchdog_show_kernels();
  return last == 0 || seconds_passed() - last < HANG_STALLS * options.stall;
}

static void run_threads(void) {
  pthread_t threads[MOST_THREADS];
  num_running = options.threads;
  for (int i = 0; i < options.threads; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, soak, &running[i]), 0);
  for (double next = PROGRESS_SECONDS; num_running > 0;) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (options.stall > 0 && !watch(threads)) {
      printf("soak: hangs after %.0f s; began with --seed=%llu --threads=%d\n", seconds_passed(),
             (unsigned long long)options.first, options.threads);
      fflush(stdout);
      _exit(1);
    }
    if (seconds_passed() < next) continue;
    show_progress();
    next += PROGRESS_SECONDS;
  }
  for (int i = 0; i < options.threads; i++) pthread_join(threads[i], NULL);
}

static void show_gpu(void) {
#ifdef FAKE_CUDA
  printf("an imitated GPU\n");
#else
  struct cudaDeviceProp gpu;
  if (cudaGetDeviceProperties(&gpu, 0) == cudaSuccess)
    printf("%s, compute capability %d.%d, %d multiprocessors, %.0f GB\n", gpu.name, gpu.major,
           gpu.minor, gpu.multiProcessorCount, (double)gpu.totalGlobalMem * 1e-9);
#endif
  fflush(stdout);
}

static int usage(void) {
  fprintf(stderr,
          "usage: soak_gpu [--seconds=N] [--seeds=N] [--seed=FIRST] [--threads=N] "
          "[--only=batches|streams|fsts|recurrent|transducers|graphs|alignments] [--stall=N] "
          "[--plant] [--hang]\n"
          "Without --seeds it runs for 60 seconds. There is a thread per processor, at most 16. "
          "After 20 seconds (--stall) without progress it shows what a thread waits for, and which "
          "kernels run; if all threads stall three times as long, it ends. "
          "--plant changes one result, --hang stops all threads: the program must detect both.\n");
  return 2;
}

static bool read_argument(const char *text) {
  if (strcmp(text, "--plant") == 0) return options.plant = true;
  if (strcmp(text, "--hang") == 0) return options.hang = true;
  const char *value = strchr(text, '=');
  if (value == NULL) return false;
  const size_t size = (size_t)(++value - text);
  if (strncmp(text, "--only=", size) == 0) {
    for (int k = 0; k < NUM_KINDS; k++)
      if (strcmp(value, kinds[k].name) == 0) options.only = k;
    return options.only >= 0;
  }
  char *end;
  const uint64_t number = strtoull(value, &end, 10);
  if (*value == '\0' || *end != '\0') return false;
  if (strncmp(text, "--seconds=", size) == 0) return options.seconds = (double)number, true;
  if (strncmp(text, "--stall=", size) == 0) return options.stall = (double)number, true;
  if (strncmp(text, "--seeds=", size) == 0) return options.most = number, true;
  if (strncmp(text, "--seed=", size) == 0) return options.first = number, true;
  if (strncmp(text, "--threads=", size) == 0)
    return options.threads = (int)number, number > 0 && number <= MOST_THREADS;
  return false;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (!read_argument(argv[i])) return usage();
  if (options.threads == 0)
    options.threads = (int)sysconf(_SC_NPROCESSORS_ONLN) < USUAL_THREADS
                          ? (int)sysconf(_SC_NPROCESSORS_ONLN)
                          : USUAL_THREADS;
  if (options.seconds < 0) options.seconds = options.most > 0 ? 0 : 60;
  if (options.stall < 0) options.stall = SOAK_SMALL ? 0 : STALL_SECONDS;
  if (test_no_gpu()) return 77;
  show_gpu();
  setenv("CMOCKA_TEST_ABORT", "1", 1);
  signal(SIGABRT, report);
#ifndef __SANITIZE_ADDRESS__ /* the address sanitizer reports more about a crash */
  signal(SIGSEGV, report);
  signal(SIGBUS, report);
  signal(SIGFPE, report);
#endif
  watchdog_begin();
  wf_set_log(count_misfits, NULL);
  next_seed = options.first;
  clock_gettime(CLOCK_MONOTONIC, &began);
  run_threads();
  if (num_misfits > 0)
    printf("%llu utterances did not fit the GPU and were decoded on the CPU\n",
           (unsigned long long)num_misfits);
  printf("soak: %llu utterances, %llu operations, %llu seeds, %.1f s, 0 differences\n",
         (unsigned long long)num_utterances, (unsigned long long)num_operations,
         (unsigned long long)num_seeds, seconds_passed());
#ifdef FAKE_CUDA
  if (fake_gpus.num_objects != 0) {
    printf("%ld allocations, streams or events are left\n", fake_gpus.num_objects);
    return 1;
  }
#endif
  return 0;
}
