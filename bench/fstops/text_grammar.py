"""A text-normalisation grammar, written once for warpfst.strings and for pynini: numbers, money, times and dates in English. bench/fstops/grammar.py compiles and runs it."""

from __future__ import annotations

from typing import Any

ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
FIRST = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth"]
SECOND = ["sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth", *(f"twenty-{word}" for word in FIRST[:9]), "thirtieth", "thirty-first"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


def grammar(t: Any) -> dict[str, Any]:
    """The parts of the grammar. `t`: the calls accep, add_weight, cross, delete, insert, string_map, optimize and cdrewrite."""

    def maybe(fst: Any) -> Any:
        """The fst, or nothing at a cost: of two readings the longer one is better."""
        return fst | t.add_weight(t.accep(""), 1.0)

    text = t.optimize(t.string_map([f"[{k}]" for k in range(1, 256)]).star)
    digit = t.string_map([(str(k), name) for k, name in enumerate(ONES, 1)])
    teen = t.string_map([(str(k), name) for k, name in enumerate(TEENS, 10)])
    ten = t.string_map([(str(k), name) for k, name in enumerate(TENS, 2)])
    two_digits = t.optimize(teen | ten + t.delete("0") | ten + t.insert("-") + digit)  # 10 to 99
    below_100 = two_digits | t.delete("0") + digit  # 01 to 99
    hundreds = digit + t.insert(" hundred") + (t.delete("00") | t.insert(" ") + below_100)
    below_1000 = hundreds | t.delete("0") + below_100
    first = digit | two_digits | hundreds
    number = t.optimize(t.cross("0", "zero") | first | first + t.delete(t.accep(",").ques) + t.insert(" thousand") + (t.delete("000") | t.insert(" ") + below_1000))
    not_one = t.optimize(text - "one")
    dollars = t.delete("$") + (t.cross("1", "one dollar") | number @ not_one + t.insert(" dollars"))
    cents = t.cross("01", "one cent") | below_100 @ not_one + t.insert(" cents")
    money = t.optimize(dollars + maybe(t.delete(".") + (t.delete("00") | t.insert(" and ") + cents)))
    hour = t.string_map([(str(k), name) for k, name in enumerate([*ONES, *TEENS[:3]], 1)])
    minute = t.cross(":00", " o'clock") | t.cross(":0", " oh ") + digit | t.cross(":", " ") + two_digits
    time = t.optimize(hour + minute + maybe(t.accep(" ").ques + (t.cross("am", "a m") | t.cross("pm", "p m"))))
    day = t.string_map([(str(k), f"the {word}") for k, word in enumerate([*FIRST, *SECOND], 1)])
    month = t.string_map([(name[:3], name) for name in MONTHS]) | t.string_map(MONTHS)
    century = t.string_map([("18", "eighteen"), ("19", "nineteen"), ("20", "twenty")])
    year = century + (t.cross("00", " hundred") | t.cross("0", " oh ") + digit | t.insert(" ") + two_digits)
    year = t.string_map([("2000", "two thousand"), *((f"200{k}", f"two thousand {word}") for k, word in enumerate(ONES, 1))]) | year @ t.optimize(text - t.accep("twenty hundred") - (t.accep("twenty oh ") + text))
    date = t.optimize(day + t.insert(" of") + t.accep(" ") + month + maybe(t.accep(" ") + year))
    left = t.accep("[BOS]") | " " | "("
    right = t.accep(".").ques + (t.accep("[EOS]") | " " | "," | ")" | "?")
    parts = {"number": number, "money": money, "time": time, "date": date}
    rules = {f"{name} in text": t.cdrewrite(part, left, right, text) for name, part in parts.items()}
    rule = t.optimize(rules["date in text"] @ rules["time in text"])
    return {**parts, **rules, "dates and times in text": rule}
