"""A grammar of English numbers from zero to a million: digits to words, words to digits, and numbers in sentences."""

import warpfst as wf
from warpfst.strings import any_of, begin, cdrewrite, delete, end, insert, optimize, rewrite, string_map

ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def numbers():
    digit = string_map((str(k), name) for k, name in enumerate(ONES, 1))
    teen = string_map((str(k), name) for k, name in enumerate(TEENS, 10))
    ten = string_map((str(k), name) for k, name in enumerate(TENS, 2))
    two_digits = wf.fst.union(teen, wf.fst.concat(ten, delete("0")), wf.fst.concat(ten, insert("-"), digit))  # 10 to 99
    below_100 = wf.fst.union(two_digits, wf.fst.concat(delete("0"), digit))  # 01 to 99
    hundreds = wf.fst.concat(digit, insert(" hundred"), wf.fst.union(delete("00"), wf.fst.concat(insert(" "), below_100)))  # 100 to 999
    below_1000 = wf.fst.union(hundreds, wf.fst.concat(delete("0"), below_100))  # 001 to 999
    first = wf.fst.union(digit, two_digits, hundreds)  # 1 to 999
    thousands = wf.fst.concat(first, insert(" thousand"), wf.fst.union(delete("000"), wf.fst.concat(insert(" "), below_1000)))
    return optimize(wf.fst.union(string_map([("0", "zero"), ("1000000", "one million")]), first, thousands))


def numbers_in_text(number):
    """Spells the numbers that stand between blanks, punctuation and the ends of a text."""
    text = wf.fst.closure(any_of("".join(map(chr, range(32, 127)))))
    return cdrewrite(number, wf.fst.union(begin(), any_of(" (")), wf.fst.union(end(), any_of(" .,;:!?)")), text)


if __name__ == "__main__":
    number = numbers()
    print(number)
    for digits in ("0", "17", "42", "300", "90210", "999999", "1000000"):
        words = rewrite(digits, number)
        assert rewrite(words, wf.fst.invert(number)) == digits
        print(digits, "->", words)
    print(rewrite("Take bus 61 at 7, not the X2.", numbers_in_text(number)))

# prints:
# <Fst: 230 states, 317 arcs, tropical>
# 0 -> zero
# 17 -> seventeen
# 42 -> forty-two
# 300 -> three hundred
# 90210 -> ninety thousand two hundred ten
# 999999 -> nine hundred ninety-nine thousand nine hundred ninety-nine
# 1000000 -> one million
# Take bus sixty-one at seven, not the X2.
