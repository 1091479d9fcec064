"""A grammar of English numbers from zero to a million: digits to words, words to digits, and numbers in sentences."""

from warpfst.fst import closure, concat, invert, union
from warpfst.strings import any_of, begin, cdrewrite, delete, end, insert, optimize, rewrite, string_map

ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def numbers():
    digit = string_map((str(k), name) for k, name in enumerate(ONES, 1))
    teen = string_map((str(k), name) for k, name in enumerate(TEENS, 10))
    ten = string_map((str(k), name) for k, name in enumerate(TENS, 2))
    two_digits = union(teen, concat(ten, delete("0")), concat(ten, insert("-"), digit))  # 10 to 99
    below_100 = union(two_digits, concat(delete("0"), digit))  # 01 to 99
    hundreds = concat(digit, insert(" hundred"), union(delete("00"), concat(insert(" "), below_100)))  # 100 to 999
    below_1000 = union(hundreds, concat(delete("0"), below_100))  # 001 to 999
    first = union(digit, two_digits, hundreds)  # 1 to 999
    thousands = concat(first, insert(" thousand"), union(delete("000"), concat(insert(" "), below_1000)))
    return optimize(union(string_map([("0", "zero"), ("1000000", "one million")]), first, thousands))


def numbers_in_text(number):
    """Spells the numbers that stand between blanks, punctuation and the ends of a text."""
    text = closure(any_of("".join(map(chr, range(32, 127)))))
    return cdrewrite(number, union(begin(), any_of(" (")), union(end(), any_of(" .,;:!?)")), text)


if __name__ == "__main__":
    number = numbers()
    print(number)
    for digits in ("0", "17", "42", "300", "90210", "999999", "1000000"):
        words = rewrite(digits, number)
        assert rewrite(words, invert(number)) == digits
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
