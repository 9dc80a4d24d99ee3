"""Vector libraries in one process, driven by lines on standard input: `build`, `exact`, `search EF`, each answered by a line of JSON.

Arguments: library, file of vectors, file of queries, dimensions, metric, k. Times are those of single calls, one thread.
"""

import json
import os
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np

library, base_file, query_file, dimensions, metric, k = sys.argv[1:7]
d, k = int(dimensions), int(k)
base = np.fromfile(base_file, dtype="<f4").reshape(-1, d)
queries = np.fromfile(query_file, dtype="<f4").reshape(-1, d)
index = None
flat = None


def build(threads):
    global index
    if library == "hnswlib":
        import hnswlib

        index = hnswlib.Index(space="cosine" if metric == "cosine" else "l2", dim=d)
        index.init_index(max_elements=len(base), M=16, ef_construction=200)
        index.add_items(base, num_threads=threads)
        index.set_num_threads(1)
    else:
        from usearch.index import Index

        index = Index(ndim=d, metric="cos" if metric == "cosine" else "l2sq", dtype="f32")
        index.add(np.arange(len(base)), base, threads=threads)


def exact_one():
    global flat
    if library == "hnswlib":
        import hnswlib

        if flat is None:
            flat = hnswlib.BFIndex(space="cosine" if metric == "cosine" else "l2", dim=d)
            flat.init_index(max_elements=len(base))
            flat.add_items(base)
        return lambda q: flat.knn_query(q, k=k)[0][0]
    from usearch.index import MetricKind, search

    kind = MetricKind.Cos if metric == "cosine" else MetricKind.L2sq
    return lambda q: search(base, q, k, kind, exact=True, threads=1).keys


def search_one(ef):
    if library == "hnswlib":
        index.set_ef(ef)
        return lambda q: index.knn_query(q, k=k, num_threads=1)[0][0]
    index.expansion_search = ef
    return lambda q: index.search(q, k, threads=1).keys


def measure(f):
    times, found = [], []
    for q in queries:
        start = time.perf_counter()
        keys = f(q)
        times.append((time.perf_counter() - start) * 1e6)
        found.append([int(x) for x in keys])
    return {"times": times, "found": found}


def version():
    module = __import__(library)
    from importlib.metadata import version as of

    return getattr(module, "__version__", None) or of(library)


print(json.dumps({"version": version()}), flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "build":
        start = time.perf_counter()
        build(int(words[1]))
        answer = {"seconds": time.perf_counter() - start}
    elif words[0] == "exact":
        answer = measure(exact_one())
    else:
        answer = measure(search_one(int(words[1])))
    print(json.dumps(answer), flush=True)
