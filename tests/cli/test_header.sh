# Each public header compiles alone, also when included twice, as strict C11 and as C++17, without warnings. A C++ program that uses only the headers and the
# library works. Old names warn.
# shellcheck shell=bash
cc=${CC:-cc} cxx=${CXX:-c++}
for header in "$SOURCE_DIR"/include/*.h; do
  printf '#include "%s"\n#include "%s"\nint main(void) { return 0; }\n' "$(basename "$header")" "$(basename "$header")" >alone.c
  cp alone.c alone.cpp
  "$cc" -std=c11 -pedantic -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -I "$SOURCE_DIR/include" -c alone.c -o alone.o
  "$cxx" -std=c++17 -pedantic -Wall -Wextra -Werror -I "$SOURCE_DIR/include" -c alone.cpp -o alone_cpp.o
done

cat > program.cpp <<'END'
#include <cmath>
#include <cstdio>

#include "warpfst_fst.h"

int main() {
  wf_error err;
  wf_builder *builder;
  wf_fst *fst, *best;
  if (wf_builder_create(WF_TROPICAL, &builder, &err) != WF_OK || wf_builder_add_states(builder, 2, nullptr, &err) != WF_OK) return 1;
  if (wf_builder_set_start(builder, 0, &err) != WF_OK || wf_builder_set_final(builder, 1, 0.5f, &err) != WF_OK) return 1;
  for (int label = 1; label < 4; label++)
    if (wf_builder_add_arc(builder, 0, wf_arc{1, 4.0f - (float)label, label, label}, &err) != WF_OK) return 1;
  if (wf_builder_finish(builder, nullptr, nullptr, &fst, &err) != WF_OK || wf_shortest_path(fst, nullptr, &best, &err) != WF_OK) return 1;
  wf_fst_view view = wf_fst_get_view(best);
  std::printf("%s %d %g\n", wf_version(), view.arcs[0].ilabel, (double)(view.arcs[0].weight + view.final_cost[1]));
  wf_fst_free(fst);
  wf_fst_free(best);
  wf_builder_free(builder);
}
END

# Old names compile, and the compiler names the new ones.
python3 - "$SOURCE_DIR/include" <<'END'
import pathlib, re, sys
text = "".join(path.read_text() for path in sorted(pathlib.Path(sys.argv[1]).glob("*.h")))
names = re.findall(r"static inline WF__OLD\((\w+)\)\s[\w\s]*?\b(wf_\w+)\(", text)
assert len(names) == text.count("static inline WF__OLD(") > 20
pathlib.Path("names.txt").write_text("".join(f"{old} {new}\n" for new, old in names))
pathlib.Path("old.c").write_text('#include "warpfst_all.h"\nint main(void) {\n' + "".join(f"  (void){old};\n" for _, old in names) + "  return 0;\n}\n")
END
"$cc" -std=c11 -Wall -Wextra -Wno-deprecated-declarations -Werror -I "$SOURCE_DIR/include" -c old.c -o old.o
"$cc" -std=c11 -I "$SOURCE_DIR/include" -c old.c -o old.o 2>warnings.txt
while read -r old new; do
  grep -q "$old.*is deprecated.*$new" warnings.txt || { echo "$old: no warning that names $new"; exit 1; }
done <names.txt
sanitizer=()
if grep -q '^WARPFST_SANITIZE:[A-Z]*=.' "$BUILD_DIR/CMakeCache.txt"; then
  sanitizer=("-fsanitize=$(sed -n 's/^WARPFST_SANITIZE:[A-Z]*=//p' "$BUILD_DIR/CMakeCache.txt")")
fi
"$cxx" -std=c++17 "${sanitizer[@]}" -I "$SOURCE_DIR/include" program.cpp "$WARPFST_LIB" -Wl,-rpath,"$(dirname "$WARPFST_LIB")" -o program
[ "$(./program)" = "$("$WARPFST" version | cut -d' ' -f2) 3 1.5" ] || { ./program; exit 1; }
