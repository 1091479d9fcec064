// openfst_ops.cc - the counterpart of bench_fstops.c: measures one OpenFst operation in process,
// without reading and writing files.
//
//     openfst_ops OP IN... [--repeat=N] [--output=FILE] [--potentials=FILE] [--strings=FILE]
//
// bench/run.sh builds it with libfst. Each repetition reads its inputs again, so that no cached
// properties can be reused. Prints a line per repetition: processor seconds, wall seconds, states,
// arcs. Operations run as in OpenFst's tools with their default flags;
// minimize is fstencode --encode_labels, fstminimize, fstencode --decode.
#include <fst/fstlib.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using Fst = fst::StdVectorFst;
using Inputs = std::vector<std::unique_ptr<Fst>>;

static double Seconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

static void Minimize(Fst *fst) {
  fst::EncodeMapper<fst::StdArc> mapper(fst::kEncodeLabels, fst::ENCODE);
  fst::Encode(fst, &mapper);
  fst::Minimize(fst);
  fst::Decode(fst, mapper);
}

static std::string strings_path;  // of factorweight: lines as `warpfst factorweight` takes them

static void FactorWeight(const Inputs &in, Fst *out) {
  using GallicArc = fst::GallicArc<fst::StdArc, fst::GALLIC_LEFT>;
  using Weight = GallicArc::Weight;
  using String = fst::StringWeight<int, fst::STRING_LEFT>;
  std::map<std::pair<int, int>, String> strings;  // by state and arc; final weights: arc -1
  std::ifstream file(strings_path);
  std::string line, owner;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    int state, label;
    words >> state >> owner;
    String &string = strings[{state, owner == "final" ? -1 : std::stoi(owner)}];
    string = String::One();
    while (words >> label) string.PushBack(label);
  }
  const auto string_of = [&](int state, int arc) {
    const auto found = strings.find({state, arc});
    return found == strings.end() ? String::One() : found->second;
  };
  fst::VectorFst<GallicArc> gallic;
  for (int s = 0; s < in[0]->NumStates(); ++s) gallic.AddState();
  if (in[0]->NumStates() > 0) gallic.SetStart(in[0]->Start());
  for (int s = 0; s < in[0]->NumStates(); ++s) {
    const auto weight = in[0]->Final(s);
    if (weight != fst::TropicalWeight::Zero()) gallic.SetFinal(s, Weight(string_of(s, -1), weight));
    int number = 0;
    for (fst::ArcIterator<Fst> arcs(*in[0], s); !arcs.Done(); arcs.Next()) {
      const auto &arc = arcs.Value();
      String string = arc.olabel == 0 ? String::One() : String(arc.olabel);
      string = fst::Times(string, string_of(s, number++));
      gallic.AddArc(s,
                    GallicArc(arc.ilabel, arc.ilabel, Weight(string, arc.weight), arc.nextstate));
    }
  }
  using Factor = fst::GallicFactor<int, fst::TropicalWeight, fst::GALLIC_LEFT>;
  const fst::FactorWeightFst<GallicArc, Factor> factored(gallic);
  fst::ArcMap(factored, out, fst::FromGallicMapper<fst::StdArc, fst::GALLIC_LEFT>());
}

// The result is in *out or, for operations that OpenFst does in place, in in[0].
static const std::map<std::string, std::function<void(const Inputs &, Fst *)>> kInto = {
    {"compose", [](const Inputs &in, Fst *out) { fst::Compose(*in[0], *in[1], out); }},
    {"compose_lookahead",
     [](const Inputs &in, Fst *out) {
       const fst::StdOLabelLookAheadFst ahead(*in[0]);
       fst::LabelLookAheadRelabeler<fst::StdArc>::Relabel(in[1].get(), ahead, true);
       fst::ArcSort(in[1].get(), fst::ILabelCompare<fst::StdArc>());
       fst::Compose(ahead, *in[1], out);
     }},
    {"determinize", [](const Inputs &in, Fst *out) { fst::Determinize(*in[0], out); }},
    {"push",
     [](const Inputs &in, Fst *out) {
       fst::Push<fst::StdArc, fst::REWEIGHT_TO_INITIAL>(*in[0], out, fst::kPushWeights);
     }},
    {"map", [](const Inputs &in,
               Fst *out) { fst::StateMap(*in[0], out, fst::ArcSumMapper<fst::StdArc>(*in[0])); }},
    {"factorweight", FactorWeight},
    {"condense",
     [](const Inputs &in, Fst *out) {
       std::vector<int> components;
       fst::Condense(*in[0], out, &components);
     }},
    {"synchronize", [](const Inputs &in, Fst *out) { fst::Synchronize(*in[0], out); }},
    {"determinize_nonfunctional",
     [](const Inputs &in, Fst *out) {
       fst::DeterminizeOptions<fst::StdArc> options;
       options.type = fst::DETERMINIZE_NONFUNCTIONAL;
       fst::Determinize(*in[0], out, options);
     }},
    {"epsnormalize", [](const Inputs &in, Fst *out) { fst::EpsNormalize(*in[0], out); }},
    {"disambiguate", [](const Inputs &in, Fst *out) { fst::Disambiguate(*in[0], out); }},
    {"difference", [](const Inputs &in, Fst *out) { fst::Difference(*in[0], *in[1], out); }},
    {"replace",
     [](const Inputs &in, Fst *out) {
       const std::vector<std::pair<int, const fst::Fst<fst::StdArc> *>> fsts = {
           {1000000, in[0].get()}, {1000001, in[1].get()}};
       fst::Replace(fsts, out, fst::ReplaceFstOptions<fst::StdArc>(1000000));
     }},
};
static std::vector<fst::TropicalWeight> potentials;  // of reweight
static const std::map<std::string, std::function<void(Fst *)>> kInPlace = {
    {"reweight", [](Fst *fst) { fst::Reweight(fst, potentials, fst::REWEIGHT_TO_INITIAL); }},
    {"minimize", Minimize},
    {"rmepsilon", [](Fst *fst) { fst::RmEpsilon(fst); }},
    {"arcsort", [](Fst *fst) { fst::ArcSort(fst, fst::ILabelCompare<fst::StdArc>()); }},
    {"connect", [](Fst *fst) { fst::Connect(fst); }},
    {"encode",
     [](Fst *fst) {
       fst::EncodeMapper<fst::StdArc> mapper(fst::kEncodeLabels, fst::ENCODE);
       fst::Encode(fst, &mapper);
     }},
};

// Lines "state potential"; a state that is not listed has the potential Infinity.
static void ReadPotentials(const char *path) {
  std::ifstream file(path);
  size_t state;
  std::string value;
  while (file >> state >> value) {
    if (state >= potentials.size()) potentials.resize(state + 1, fst::TropicalWeight::Zero());
    if (value != "Infinity") potentials[state] = fst::TropicalWeight(std::stof(value));
  }
}

static bool RunOnce(const std::string &op, const std::vector<std::string> &paths,
                    const std::string &output) {
  Inputs in;
  for (const auto &path : paths) {
    in.emplace_back(Fst::Read(path));
    if (!in.back()) return false;
  }
  Fst out;
  const auto into = kInto.find(op);
  const double cpu = Seconds(CLOCK_PROCESS_CPUTIME_ID), wall = Seconds(CLOCK_MONOTONIC);
  if (into != kInto.end())
    into->second(in, &out);
  else
    kInPlace.at(op)(in[0].get());
  const double cpu_end = Seconds(CLOCK_PROCESS_CPUTIME_ID), wall_end = Seconds(CLOCK_MONOTONIC);
  const Fst &result = into != kInto.end() ? out : *in[0];
  size_t arcs = 0;
  for (int s = 0; s < result.NumStates(); ++s) arcs += result.NumArcs(s);
  std::printf("%.6f %.6f %d %zu\n", cpu_end - cpu, wall_end - wall, result.NumStates(), arcs);
  return output.empty() || result.Write(output);
}

int main(int argc, char **argv) {
  std::vector<std::string> paths;
  std::string output;
  int repeat = 1;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--repeat=", 0) == 0)
      repeat = std::atoi(argument.c_str() + 9);
    else if (argument.rfind("--output=", 0) == 0)
      output = argument.substr(9);
    else if (argument.rfind("--potentials=", 0) == 0)
      ReadPotentials(argument.c_str() + 13);
    else if (argument.rfind("--strings=", 0) == 0)
      strings_path = argument.substr(10);
    else
      paths.push_back(argument);
  }
  const std::string op = argc > 1 ? argv[1] : "";
  const bool two =
      op == "compose" || op == "compose_lookahead" || op == "difference" || op == "replace";
  if ((kInto.count(op) == 0 && kInPlace.count(op) == 0) || paths.size() != (two ? 2u : 1u)) {
    std::fprintf(stderr,
                 "usage: openfst_ops OP IN... [--repeat=N] [--output=FILE] [--potentials=FILE] "
                 "[--strings=FILE]\n");
    return 2;
  }
  for (int i = 0; i < repeat; ++i)
    if (!RunOnce(op, paths, output)) return 1;
  return 0;
}
