"""Makes L, C and H of a Sphinx model directly from their definition, without disambiguation symbols, determinization or minimization. Self-loops are inside H.
usage: hmm_reference.py MODEL mdef.txt dictionary words.txt OUT
MODEL is a folder with transition_matrices. words.txt has `word id` lines. Writes OUT/{L,C,H}.txt for fstcompile, with numeric labels. Costs are PocketSphinx's
defaults divided by 6.5."""
import math
import struct
import sys

model, mdef, dictionary, words, out = sys.argv[1:]
SCALE, WIP, SILPROB = 1 / 6.5, 0.65, 0.005

# --- model
data = open(model + '/transition_matrices', 'rb').read()
at = data.index(b'endhdr\n') + 7 + 4
matrices, states, _, _ = struct.unpack_from('<4i', data, at)
values = struct.unpack_from('<%df' % (matrices * states * (states + 1)), data, at + 16)


def p(tmat, state, to):
    row = values[(tmat * states + state) * (states + 1):][:states + 1]
    return row[to] / sum(row)


plain, triphones = {}, {}
for line in open(mdef):
    f = line.split()
    if len(f) > 6 and f[-1] == 'N':
        hmm = (int(f[5]),) + tuple(map(int, f[6:-1]))
        if f[1] == '-':
            plain[f[0]] = hmm
        else:
            triphones[tuple(f[:4])] = hmm


def hmm_of(base, left, right, position):
    if base == 'SIL':
        return plain[base]
    outer = (base, 'SIL' if position in 'bs' else left, 'SIL' if position in 'es' else right)
    for context in ((base, left, right), outer):
        for q in position + 'ibes':
            if context + (q,) in triphones:
                return triphones[context + (q,)]
    return plain[base]


# --- L
ids = dict(line.split() for line in open(words))
bases = sorted(b for b in plain if b[0] != '+' and b != 'SIL')
phone_id = {'SIL': 1}
for base in bases:
    for q in 'ibes':
        phone_id[base, q] = len(phone_id) + 1
with open(out + '/L.txt', 'w') as f:
    f.write('0 1 1 0\n1 1 1 0 %.9f\n1 2 1 0\n2\n' % (-math.log(SILPROB) * SCALE))
    count = 3
    for line in open(dictionary):
        word, *phones = line.split()
        word = word[:word.rindex('(')] if word.endswith(')') and word[-2].isdigit() else word
        if word not in ids:
            continue
        state = 1
        for i, base in enumerate(phones):
            q = 's' if len(phones) == 1 else 'b' if i == 0 else 'e' if i + 1 == len(phones) else 'i'
            to, count = (1, count) if i + 1 == len(phones) else (count, count + 1)
            f.write('%d %d %d %s %.9f\n' % (state, to, phone_id[base, q], ids[word] if i == 0 else 0, -math.log(WIP) * SCALE if i == 0 else 0))
            state = to

# --- C: a state is (left base phone, central phone). The olabel is the right context: a phone's HMM is written when the next phone is read.
hmm_ids, number = {}, {}


def state_of(left, phone):
    return number.setdefault((left, phone), len(number))


sil = ('SIL', '')
with open(out + '/C.txt', 'w') as f:
    def arc(a, b, hmm, phone):
        f.write('%d %d %d %d\n' % (state_of(*a), state_of(*b), hmm_ids.setdefault(hmm, len(hmm_ids) + 1) if hmm else 0, phone_id['SIL' if phone == sil else phone] if phone else 0))
    everything = [(b, q) for b in bases for q in 'ibes'] + [sil]
    for phone in everything:  # the first phone
        arc(('start', None), ('SIL', phone), None, phone)
    for left in bases + ['SIL']:
        for phone in everything:
            if left == 'SIL' and phone[1] in ('i', 'e'):
                continue
            for right in everything:
                arc((left, phone), (phone[0], right), hmm_of(phone[0], left, right[0], phone[1]), right)
            if phone == sil:  # the end
                arc((left, phone), ('end', None), plain['SIL'], None)
    f.write('%d\n' % state_of('end', None))

# --- H, self-loops included
with open(out + '/H.txt', 'w') as f:
    count = 1
    f.write('0\n')
    lines = []
    for hmm, number_of in hmm_ids.items():
        tmat, senones = hmm[0], hmm[1:]
        for s, senone in enumerate(senones):
            lines.append('%d %d %d %d %.9f\n' % (0 if s == 0 else count + s - 1, count + s, senone + 1, number_of if s == 0 else 0, 0 if s == 0 else -math.log(p(tmat, s - 1, s)) * SCALE))
            lines.append('%d %d %d 0 %.9f\n' % (count + s, count + s, senone + 1, -math.log(p(tmat, s, s)) * SCALE))
        lines.append('%d 0 0 0 %.9f\n' % (count + len(senones) - 1, -math.log(p(tmat, len(senones) - 1, len(senones))) * SCALE))
        count += len(senones)
    f.writelines(lines)
