# SPDX-License-Identifier: Apache-2.0
"""An engine for `cairn push` that keeps what it is sent, decodes it, and misbehaves as it is told. It follows what
Pyroscope, Parca, OpenTelemetry and Prometheus say of their protocols; none of their code is in it."""

import base64
import contextlib
import gzip
import http.server
import json
import threading
import urllib.parse

import protobuf as pb

# What the engine does with a request instead of taking it.
SLOW, CUT, GARBAGE, HTML, ENDLESS = "slow", "cut", "garbage", "html", "endless"


class Profile:
    """profile.proto: values by stack, a stack being names of functions, innermost first."""

    def __init__(self, data):
        data = gzip.decompress(data)
        texts = [text.decode() for text in pb.of(data, 6)]
        self.types = [texts[pb.one(kind, 1, 0)] for kind in pb.of(data, 1)]
        self.usual = texts[pb.one(data, 14, 0)]
        self.time_ns, self.duration_ns = pb.one(data, 9, 0), pb.one(data, 10, 0)
        self.comments = [texts[number] for number in pb.of(data, 13)]
        functions = {pb.one(one, 1): texts[pb.one(one, 2, 0)] for one in pb.of(data, 5)}
        places = {pb.one(one, 1): [functions[pb.one(line, 1)] for line in pb.of(one, 4)] for one in pb.of(data, 4)}
        self.stacks, self.heaps = {}, {}
        for sample in pb.of(data, 2):
            names = tuple(name for place in pb.packed(pb.one(sample, 1)) for name in places[place])
            values = pb.packed(pb.one(sample, 2))
            assert len(values) == len(self.types), "as many values as types"
            known = self.stacks.setdefault(names, [0] * len(values))
            self.stacks[names] = [a + b for a, b in zip(known, values)]
            labels = {texts[pb.one(label, 1)]: texts[pb.one(label, 2, 0)] for label in pb.of(sample, 3)}
            self.add_to_heap(labels.get("heap"), values)
        self.sample_count = len(pb.of(data, 2))

    def add_to_heap(self, heap, values):
        """Sums of all samples by their label `heap`: None of those that have none."""
        known = self.heaps.setdefault(heap, [0] * len(values))
        self.heaps[heap] = [a + b for a, b in zip(known, values)]

    def values(self, kind, function=None):
        at = self.types.index(kind)
        return sum(values[at] for names, values in self.stacks.items() if function is None or function in names)


class OtlpProfile(Profile):
    """opentelemetry.proto.profiles.v1development; the profiles of all kinds of values as one."""

    def __init__(self, data):
        data = gzip.decompress(data)
        resource, scope = (pb.one(pb.one(data, 1), number) for number in (1, 2))
        dictionary = pb.one(data, 2)
        texts = [text.decode() for text in pb.of(dictionary, 5)]
        tables = {number: pb.of(dictionary, number) for number in (1, 2, 3, 4, 6, 7)}
        for number, table in tables.items():
            assert table[0] == b"", f"table {number} begins with an empty entry"
        assert texts[0] == ""
        functions = [texts[pb.one(one, 1, 0)] for one in tables[3]]
        places = [[functions[pb.one(line, 1)] for line in pb.of(one, 3)] for one in tables[2]]
        stacks = [tuple(name for place in pb.packed(pb.one(one, 1)) for name in places[place]) for one in tables[7]]
        for mapping in tables[1]:
            assert all(number < len(tables[6]) for number in pb.packed(pb.one(mapping, 5)))
        self.attributes = {pb.one(pair, 1).decode(): pb.one(pb.one(pair, 2), 1).decode() for pair in pb.of(resource, 1)}
        self.scope = pb.one(pb.one(scope, 1), 1).decode()
        self.types, self.stacks, self.heaps, self.sample_count = [], {}, {}, 0
        attributes = [(texts[pb.one(one, 1, 0)], pb.one(pb.one(one, 2, b""), 1, b"").decode()) for one in tables[6]]
        profiles = pb.of(scope, 2)
        for at, profile in enumerate(profiles):
            self.types.append(texts[pb.one(pb.one(profile, 1), 1)])
            self.time_ns, self.duration_ns = pb.fixed64(pb.one(profile, 3)), pb.one(profile, 4, 0)
            for sample in pb.of(profile, 2):
                value, = pb.packed(pb.one(sample, 4))
                self.stacks.setdefault(stacks[pb.one(sample, 1)], [0] * len(profiles))[at] += value
                heap = dict(attributes[number] for number in pb.packed(pb.one(sample, 2, b""))).get("heap")
                self.add_to_heap(heap, [value if kind == at else 0 for kind in range(len(profiles))])
                self.sample_count += 1


class Request:
    def __init__(self, path, headers, body):
        url = urllib.parse.urlsplit(path)
        self.path, self.headers, self.body = url.path, headers, body
        self.query = dict(urllib.parse.parse_qsl(url.query))

    def profile(self):
        """(labels, profile)."""
        kind = self.headers["Content-Type"]
        if self.path.endswith("/ingest"):
            assert kind == "application/octet-stream" and self.query["format"] == "pprof"
            name, _, rest = self.query["name"].partition("{")
            labels = dict(pair.split("=") for pair in rest.removesuffix("}").split(",") if pair)
            return {"service_name": name, **labels}, Profile(self.body)
        if self.path.endswith("/push.v1.PusherService/Push"):
            assert kind == "application/proto"
            series = pb.one(self.body, 1)
            labels = {pb.one(pair, 1).decode(): pb.one(pair, 2).decode() for pair in pb.of(series, 1)}
            return labels, Profile(pb.one(pb.one(series, 2), 1))
        if self.path.endswith("/api/profiles/writeraw"):
            assert kind == "application/json"
            series, = json.loads(self.body)["series"]
            sample, = series["samples"]
            labels = {pair["name"]: pair["value"] for pair in series["labels"]["labels"]}
            return labels, Profile(base64.b64decode(sample["rawProfile"], validate=True))
        assert self.path.endswith("/v1development/profiles")
        assert (kind, self.headers["Content-Encoding"]) == ("application/x-protobuf", "gzip")
        found = OtlpProfile(self.body)
        return found.attributes, found

    def series(self):
        """Of remote write: {labels as sorted pairs: (value, time in ms)}."""
        assert self.headers["Content-Encoding"] == "snappy"
        found = {}
        for one in pb.of(pb.unsnap(self.body), 1):
            labels = [(pb.one(pair, 1).decode(), pb.one(pair, 2).decode()) for pair in pb.of(one, 1)]
            assert labels == sorted(labels), "labels come in the order of their names"
            sample = pb.one(one, 2)
            found[tuple(labels)] = (pb.double(pb.one(sample, 1)), pb.one(sample, 2))
        return found


class Engine:
    """`with Engine() as engine:`; engine.faults is worked off request by request, then all are taken."""

    def __init__(self):
        self.taken, self.seen, self.faults = [], [], []
        self.released = threading.Event()  # ends answers that are slow
        engine = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                fault = engine.faults.pop(0) if engine.faults else None
                request = Request(self.path, self.headers, body)
                engine.seen.append((request, fault))
                if fault is None:
                    engine.taken.append(request)
                    return self.answer(200)
                engine.misbehave(self, fault)

            def answer(self, status, text=b"", **headers):
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(text)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def misbehave(self, handler, fault):
        handler.close_connection = True
        if fault == CUT:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        elif fault == GARBAGE:
            handler.wfile.write(b"\x00\xffthis is no HTTP\r\n\r\n")
        elif fault == HTML:
            handler.answer(200, b"<html>Welcome to the router", Content_Type="text/html; charset=utf-8")
        elif fault == ENDLESS:
            handler.wfile.write(b"HTTP/1.1 503 Busy\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                while not self.released.is_set():
                    handler.wfile.write(b"x" * 65536)
        elif fault == SLOW:
            self.released.wait()
        else:
            status, text, headers = fault
            handler.answer(status, text, **headers)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
