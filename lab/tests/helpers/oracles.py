"""A corpus made in memory, and what the benchmark's methods make of it by NumPy and scikit-learn alone.

Rows of a representation are dense arrays by domain; parts of a domain are taken in ascending order.
"""

from itertools import permutations

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from tests.helpers.oracles import algorithm_2
from undrift.inputs.device import Place
from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.methods.cells import Bench
from undrift_lab.methods.families import find_outcomes

SEED, N_FOLDS = 4, 5
SIZES = {"books": 124, "dvd": 112, "toys": 100}
TASKS = list(permutations(SIZES, 2))


def made_corpus(n_terms=24):
    """Counts in which some terms speak for a class everywhere and some in one domain alone.

    Parts are strewn over a domain, out of order and of different sizes, and some rows have no label.
    """
    rng = np.random.default_rng(11)
    domains = {}
    for number, (name, n) in enumerate(SIZES.items()):
        y = rng.choice([-1.0, 1.0], n)
        rate = np.full((n, n_terms), 0.5)
        rate[:, 8:10] += 1.5 * number  # so that centring by domain, and idf, matter
        first = 10 + 4 * number
        for good, bad in ((range(0, 3), range(3, 6)), (range(first, first + 2), range(first + 2, first + 4))):
            rate[np.ix_(y > 0, good)] += 0.5
            rate[np.ix_(y < 0, bad)] += 0.5
        order, n_train = rng.permutation(n), 40 + 4 * number
        train, test, rest = np.split(order, [n_train, n_train + 48])
        y[rest[::2]] = np.nan  # the others have a label that is not to be learnt from
        X = sp.csr_array(rng.poisson(rate).astype(np.float64))
        domains[name] = Domain(name, X=X, y=y, train=train, test=test, unlabelled=rest)
    return Corpus("made", domains)


def bench_of(corpus, setting):
    """A bench on the host, of one thread."""
    return Bench(corpus, setting, Place(), "cpu", SEED, {})


def find_all(bench, cells):
    """Findings of some cells, by any of the families."""
    return [finding for _, _, findings in find_outcomes("transfer", bench, cells) for finding in findings]


def dense(corpus):
    """Rows of each domain as they are."""
    return {name: own.X.toarray() for name, own in corpus.domains.items()}


def of_part(corpus, rows, domain, part):
    """Rows and labels of a part."""
    index = sorted(getattr(corpus.domains[domain], part))
    return rows[domain][index], corpus.domains[domain].y[index]


def authors_C(Z):
    """One over the mean square length of the training rows."""
    return 1 / np.mean([z @ z for z in Z])


def svm(Z, C):
    return SVC(kernel="linear", C=C * authors_C(Z))


def cv_accuracy(Z, y, C):
    """Share of rows that are right when their fold is left out; C is in units of the rule for all rows."""
    right = 0
    for fit, check in StratifiedKFold(N_FOLDS, shuffle=True, random_state=SEED).split(Z, y):
        model = SVC(kernel="linear", C=C * authors_C(Z)).fit(Z[fit], y[fit])
        right += np.sum(model.predict(Z[check]) == y[check])
    return right / len(y)


def best(candidates):
    """The key of highest value, the first of equals."""
    return max(candidates, key=candidates.get)


def searched(Z, y, Cs):
    """The C of highest cross-validated accuracy; a single one is not tried."""
    return best({C: cv_accuracy(Z, y, C) for C in Cs}) if len(Cs) > 1 else Cs[0]


def transferred(corpus, rows, source, target, C):
    """Predictions of the target's test rows by an SVM trained on the source's train rows."""
    Z, y = of_part(corpus, rows, source, "train")
    return svm(Z, C).fit(Z, y).predict(of_part(corpus, rows, target, "test")[0])


def split_by_domain(corpus, stacked):
    """Rows of each domain out of all rows."""
    edges = np.cumsum([len(own) for own in corpus.domains.values()])[:-1]
    return dict(zip(corpus.domains, np.split(stacked, edges), strict=True))


def tfidf(corpus, length=1.0, inductive=False):
    """``(1 + ln count) (1 + ln((1 + n) / (1 + n_with)))``, rows scaled to `length`."""
    X = np.vstack(list(dense(corpus).values()))
    seen = X
    if inductive:
        seen = np.vstack(
            [np.delete(rows, corpus.domains[name].test, axis=0) for name, rows in dense(corpus).items()]
        )
    idf = 1 + np.log((1 + len(seen)) / (1 + np.count_nonzero(seen, axis=0)))
    weighted = np.where(X > 0, 1 + np.log(np.maximum(X, 1)), 0) * idf
    norms = np.linalg.norm(weighted, axis=1, keepdims=True)
    return split_by_domain(corpus, length * weighted / norms)


def principal(corpus, n):
    """Scores on the leading n principal components of all rows."""
    X = np.vstack(list(dense(corpus).values()))
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return split_by_domain(corpus, (U * s)[:, :n])


def msda_layers(corpus, rows, noise, n_layers):
    """``h^0, ..., h^l``, each by domain: the given rows, then Algorithm 2 on these rows."""
    stacked = np.vstack(list(rows.values()))
    layers = [h for _, h in algorithm_2(stacked, noise, n_layers)]
    return [rows, *(split_by_domain(corpus, h) for h in layers)]


def joined(layers):
    """``[h^0, ..., h^l]`` by domain."""
    return {name: np.hstack([layer[name] for layer in layers]) for name in layers[0]}


def msda(corpus, noise, n_layers):
    """Counts, and the hidden rows of their presence."""
    present = {name: (X > 0).astype(float) for name, X in dense(corpus).items()}
    _, *hidden = msda_layers(corpus, present, noise, n_layers)
    return joined([dense(corpus), *hidden])
