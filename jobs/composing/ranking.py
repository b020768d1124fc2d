"""Rank sentences by how much the others speak of the same things (TextRank).

A sentence's vector is its terms weighted by rarity; two sentences are linked by the cosine of
theirs; the weight then spreads along the links until it settles.

Guarantees: deterministic; work bounded by `MAX_RANKED` sentences and `ROUNDS` rounds. Pure.
Leaves to others: position, length, redundancy and the choice.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

#: More sentences than this are thinned out before they are ranked.
MAX_RANKED = 400
ROUNDS = 20
_DAMPING = 0.85
_CLOSE_ENOUGH = 1e-4

Vector = dict[str, float]


def vectors(term_lists: Sequence[Sequence[str]]) -> list[Vector]:
    """Turn each sentence's terms into a vector of length one; an empty one for no terms."""
    spread = Counter(term for terms in term_lists for term in set(terms))
    total = len(term_lists)
    weighted = (
        {
            term: (1 + math.log(count)) * math.log(1 + total / spread[term])
            for term, count in Counter(terms).items()
        }
        for terms in term_lists
    )
    return [_unit(vector) for vector in weighted]


def cosine(left: Vector, right: Vector) -> float:
    """Give the likeness of two unit vectors, 0 to 1."""
    if len(right) < len(left):
        left, right = right, left
    return sum(weight * right[term] for term, weight in left.items() if term in right)


def rank(units: Sequence[Vector], check: Callable[[], None]) -> list[float]:
    """Score sentences, 1 being the average; `check` is called often and may raise to stop."""
    links = _links(units, check)
    strength = [sum(weights.values()) for weights in links]
    scores = [1.0] * len(units)
    for _ in range(ROUNDS):
        check()
        fresh = [1 - _DAMPING] * len(units)
        for here, weights in enumerate(links):
            if strength[here]:
                share = _DAMPING * scores[here] / strength[here]
                for there, weight in weights.items():
                    fresh[there] += share * weight
        moved = max((abs(a - b) for a, b in zip(scores, fresh, strict=True)), default=0.0)
        scores = fresh
        if moved < _CLOSE_ENOUGH:
            break
    return scores


def _links(units: Sequence[Vector], check: Callable[[], None]) -> list[dict[int, float]]:
    """Find the sentences each one shares terms with, over an index of terms."""
    index: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    links: list[dict[int, float]] = [{} for _ in units]
    for here, unit in enumerate(units):
        check()
        likeness: defaultdict[int, float] = defaultdict(float)
        for term, weight in unit.items():
            for there, other in index[term]:
                likeness[there] += weight * other
            index[term].append((here, weight))
        for there, value in likeness.items():
            links[here][there] = links[there][here] = value
    return links


def _unit(vector: Vector) -> Vector:
    length = math.sqrt(sum(weight * weight for weight in vector.values()))
    return {term: weight / length for term, weight in vector.items()} if length else {}
