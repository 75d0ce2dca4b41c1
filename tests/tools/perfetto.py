# SPDX-License-Identifier: Apache-2.0
"""A trace of Perfetto as far as `cairn export -f perfetto` makes one: every reference is resolved, by the field
numbers of the public schema."""

import protobuf

MONOTONIC = 3


class Trace:
    def __init__(self, path):
        self.functions, self.paths, self.build_ids, self.sources = {}, {}, {}, {}
        self.mappings, self.frames, self.stacks = {}, {}, {}
        self.dumps = []  # (time, {stack: (allocated, freed, calls, frees)})
        self.names = []  # (time, text)
        self.counters, self.process = {}, {}
        self.tracks, self.was_continued, self.index = {}, False, 0
        with open(path, "rb") as file:
            for packet in protobuf.message(file.read())[1]:
                self.take(protobuf.message(packet))

    def take(self, packet):
        assert packet[10] == [1], "a packet without its sequence"
        time = packet.get(8, [None])[0]
        assert time is None or packet[58] == [MONOTONIC]
        if 6 in packet:
            clocks = [protobuf.message(clock) for clock in protobuf.message(packet[6][0])[1]]
            self.start = {clock[1][0]: clock[2][0] for clock in clocks}
        if 60 in packet:
            self.take_track(protobuf.message(packet[60][0]))
        if 12 in packet:
            assert packet[13] == [2 if self.functions or self.paths else 1], "flags of the sequence"
            self.take_entries(protobuf.message(packet[12][0]))
        if 11 in packet:
            self.take_event(time, protobuf.message(packet[11][0]))
        if 37 in packet:
            self.take_profile(time, protobuf.message(packet[37][0]))

    def take_track(self, track):
        if 3 in track:
            process = protobuf.message(track[3][0])
            self.process = {"pid": process[1][0], "command": process[2][0].decode(), "name": process[6][0].decode(),
                            "trust": process[8][0].decode(), "uuid": track[1][0]}
        else:
            assert track[5] == [self.process["uuid"]], "a track of no process"
            self.tracks[track[1][0]] = track[2][0].decode()

    def take_event(self, time, event):
        track = self.tracks[event[11][0]]
        if event[9] == [3]:
            self.names.append((time, event[23][0].decode()))
        else:
            assert event[9] == [4]
            self.counters.setdefault(track, []).append((time, event[30][0]))

    def take_entries(self, entries):
        for field, table in ((5, self.functions), (16, self.build_ids), (17, self.paths), (18, self.sources)):
            for entry in map(protobuf.message, entries.get(field, [])):
                assert entry[1][0] not in table
                table[entry[1][0]] = entry[2][0] if field == 16 else entry[2][0].decode()
        for entry in map(protobuf.message, entries.get(19, [])):
            self.mappings[entry[1][0]] = (self.paths[entry[7][0]], self.build_ids.get(entry.get(2, [0])[0], b"").hex())
        for entry in map(protobuf.message, entries.get(6, [])):
            self.frames[entry[1][0]] = {"function": self.functions[entry[2][0]], "mapping": self.mappings[entry[3][0]],
                                        "offset": entry[4][0], "file": self.sources.get(entry.get(5, [0])[0]),
                                        "line": entry.get(6, [0])[0]}
        for entry in map(protobuf.message, entries.get(7, [])):
            self.stacks[entry[1][0]] = [self.frames[number] for number in entry[2]]

    def take_profile(self, time, profile):
        assert profile.get(7, [0]) == [self.index], "a lost profile packet"
        self.index += 1
        dump = protobuf.message(profile[5][0])
        assert dump[9] == [time] and dump[1] == [self.process["pid"]] and dump[11] == [b"malloc"]
        if not self.was_continued:
            self.dumps.append((time, {}))
        self.was_continued = profile.get(6) == [1]
        for sample in map(protobuf.message, dump.get(2, [])):
            number = sample[1][0]
            assert number in self.stacks and number not in self.dumps[-1][1]
            self.dumps[-1][1][number] = tuple(sample.get(field, [0])[0] for field in (2, 3, 5, 6))

    def live_at(self, name):
        """Bytes of each stack in the dump of that name."""
        dump = [text for _, text in self.names].index(name)
        return {number: allocated - freed for number, (allocated, freed, _, _) in self.dumps[dump][1].items()}
