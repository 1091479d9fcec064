# man_page.awk - makes a manual page from the help of a command: its usage, text, and lists of flags. man_pages.sh sets
# name (warpfst-decode), summary, version, and also (pages for SEE ALSO).
function escaped(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  gsub(/'/, "\\(aq", text)
  gsub(/`/, "\\(ga", text)
  if (text ~ /^\./) text = "\\\\&" text
  return text
}
function section(title) { printf ".SH %s\n", title }
function lines(on) {
  if (on && !as_it_is) print ".nf"
  if (!on && as_it_is) print ".fi"
  as_it_is = on
}
BEGIN {
  printf ".TH %s 1 \"\" \"warpfst %s\" \"User Commands\"\n", toupper(name), version
  section("NAME")
  printf "%s \\- %s\n", escaped(name), escaped(summary)
}
NR == 1 && !/^usage: / { next } # the first line of the overview: name and version
/^usage: / { section("SYNOPSIS"); lines(1); print escaped(substr($0, 8)); next }
/^Flags:$/ || /^Options \(.*\):$/ {
  lines(0)
  sub(/:$/, "")
  section(toupper($0))
  described = in_flags = 1
  next
}
in_flags && /^  -/ { # "  -o, --output=FILE   help text"; the help text may be on the next line
  at = match(substr($0, 3), /  +/)
  flag = at ? substr($0, 3, at - 1) : substr($0, 3)
  text = at ? substr($0, 2 + at + RLENGTH) : ""
  flag = escaped(flag)
  long = length(flag) > 70 # a list of values, which may be broken, but not stretched to both margins
  if (long) gsub(/\|/, "|\\:", flag)
  printf "%s.TP\n.B %s\n%s", long ? ".ad l\n" : "", flag, long ? ".ad b\n" : ""
  if (text != "") print escaped(text)
  next
}
in_flags && /^ +/ { sub(/^ +/, ""); print escaped($0); next }
/^$/ { blank = 1; next }
{
  if (in_flags) { section("NOTES"); in_flags = 0 }
  else if (!described) { lines(0); section("DESCRIPTION"); described = 1 }
  else if (blank) { lines(0); print ".PP" }
  lines(/^ / || /[^ ]   /) # examples and tables
  blank = 0
  print escaped($0)
}
END {
  lines(0)
  if (also != "") { section("SEE ALSO"); print also }
}
