// peer_kenlm.cc - measures KenLM's queries per second on one core, as bench_lm does for ours.
// bench/run.sh builds it from the sources of PyPI's kenlm.
//     peer_kenlm MODEL TEXT [--seconds=1]      MODEL: ARPA, or a binary file of build_binary
//     (probing or trie); TEXT: one sentence per line
// Words are looked up first, as in bench_lm, so that the figure is for model queries only.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lm/model.hh"
#include "lm/binary_format.hh"

static double cpu_s() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

template <class Model>
static void measure(const char *path, const char *text, double seconds) {
  Model model(path);
  std::vector<lm::WordIndex> words;
  std::ifstream file(text);
  const lm::WordIndex end = model.GetVocabulary().EndSentence();
  for (std::string line, word; std::getline(file, line); words.push_back(end))
    for (std::istringstream in(line); in >> word;)
      words.push_back(model.GetVocabulary().Index(word));
  double start = cpu_s(), used = 0, sum = 0;
  unsigned long long queries = 0;
  while (used < seconds) {
    lm::ngram::State state = model.BeginSentenceState(), next;
    for (lm::WordIndex word : words) {
      sum += model.Score(state, word, next);
      state = word == end ? model.BeginSentenceState() : next;
    }
    queries += words.size();
    used = cpu_s() - start;
  }
  std::printf("{\"queries_per_cpu_s\": %.0f, \"mean_nats\": %.4f}\n", queries / used,
              -sum * M_LN10 / queries);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  double seconds =
      argc > 3 && std::strncmp(argv[3], "--seconds=", 10) == 0 ? std::atof(argv[3] + 10) : 1;
  lm::ngram::ModelType type = lm::ngram::PROBING;
  lm::ngram::RecognizeBinary(argv[1], type);
  if (type == lm::ngram::TRIE)
    measure<lm::ngram::TrieModel>(argv[1], argv[2], seconds);
  else
    measure<lm::ngram::ProbingModel>(argv[1], argv[2], seconds);
  return 0;
}
