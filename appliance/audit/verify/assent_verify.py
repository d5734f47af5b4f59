#!/usr/bin/env python3
"""assent_verify: a second verifier of Assent's audit log.

It is written from FORMAT.md and audit.cddl and shares no code with the box, so that what a log proves does not rest on one
program's reading of it. It needs Python 3.9 and the package "cryptography" (Debian: python3-cryptography). CBOR is read
here and not by a library, because libraries accept encodings that the format forbids.

    assent_verify.py PATH [--all-seals] [--root HEX] [--head CODE] [--anchor FILE]... [--withheld] [--pruned] [--json]

PATH is the directory with the segments, or one with a directory "log" in it. Exit status: 0 intact, 1 altered, 2 incomplete,
or nothing to judge, 3 wrong usage. A copy that says itself that literal texts were left out is intact without them.
"""

import argparse
import base64
import binascii
import hashlib
import io
import json
import os
import re
import stat
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SEGMENT, BLOCK = 1 << 20, 4096
MAX_BODY, MAX_BLOB_BODY = 4096, 65536 + 512
MAX_ANCHOR = 2 + 34 + 2 * (3 + MAX_BODY)  # bytes of an entry in anchors.cborseq
MAX_LIST, MAX_NESTING = 256, 8
MAX_LIVE, MAX_OPEN = 4096, 64  # invocations that did not end, and intents without an effect, at one time
MAX_ENDED = 65536  # invocations of one boot that ended and are remembered
MAX_MISSING = 65536  # redacted blobs that no record explains yet, at one time

RECORD, BLOB = 0, 1  # classes of frames
ZERO = bytes(32)

# Numbers of enumerations on which rules depend.
POLICY = 5  # stage
CONFIRM, REFUSE = 2, 3  # verdict
APPROVED = 1  # outcome
BOX = 1  # actor
PRUNE = 10  # action
START = 1  # reason of an epoch

INTACT, ALTERED, INCOMPLETE = "intact", "altered", "incomplete"
EXIT = {INTACT: 0, ALTERED: 1, INCOMPLETE: 2}

# The payloads of audit.cddl. A payload's keys are 1, 2, 3 … in this order; "?" marks what may be left out.
PAYLOADS = """
genesis     version:1..1 root:digest statement:octets
segment     index:u32 first:u64 prev-link:digest epoch:u32 seal-key:digest receipt-key:digest grant-key:digest
            open?:[64:open-intent] other?:u64 exported?:u64 pruned?:u32 export?:u64
boot        image?:digest config?:digest policy?:digest models?:[256:digest] reset?:words tail-bytes?:u64
            tail-digest?:digest unresolved?:[256:id] registry?:digest build?:words binary?:digest engine?:digest
            program?:1..2 panel?:words
proposal    capability?:words version?:u16 revision?:words schema-digest?:digest args-digest?:digest name?:b256
            raw-digest?:digest slot?:u32 person?:words ask?:id ask-digest?:digest ask-counter?:u64 conversation?:id
            run-digest?:digest step?:u16 index?:u16 call-id?:b256 taint?:[8:octets] args-view?:digest log?:1..3
            registry?:digest catalog?:digest tool?:digest parent?:id signed-ask?:digest
decision    stage:1..8 verdict:1..3 status?:1..8 code?:words rule?:words policy-digest?:digest reason?:words
            effect?:1..3 network?:1..4 privacy?:1..3 role?:1..3 field?:octets next?:ns resource?:digest by?:1..8
approval    outcome:1..8 receipt?:octets screen-digest?:digest args-digest?:digest request-digest?:digest
            pages?:[8:digest] page-count?:u16 queued?:ns fronted?:ns shown?:ns pressed?:ns completed?:ns expires?:ns
            presses?:[32:press] mode?:1..3 by?:1..8 slot?:u32 steps?:[48:step] left-out?:u16
intent      proposal:u64 decision:u64 approval?:u64 args-digest:digest effect-id?:id request-digest?:digest
            destination?:digest deadline?:ns class?:1..4 credential?:words expects?:digest idempotent?:bool
            receipt-digest?:digest
effect      intent:u64 status:1..3 code?:words duration?:ns result-digest?:digest result-bytes?:u64
            request-digest?:digest grant-digest?:digest attempts?:u16 sent?:bool answer-digest?:digest
            answer-bytes?:u64 http-status?:u16 items?:u16 truncated?:bool peer?:digest cause?:1..2 accepted?:1..2
            retrieved?:int address?:digest
observe     intent:u64 matches?:1..2 source?:words view?:digest status?:1..3 code?:words final?:bool by?:1..8
            slot?:u32 lookup?:id
seal        sign1:octets
epoch       n:1..4294967295 seal-key:digest receipt-key:digest grant-key:digest reason:1..3
clock       from:int to:int from-state:0..2 to-state:0..2 source?:words
prune       first-segment:u32 last-segment:u32 first:u64 last:u64 last-link:digest export?:u64 by?:1..8 admin?:u64
export      first-segment:u32 last-segment:u32 last:u64 last-link:digest ok?:bool sums?:digest volume?:octets
            redacted?:bool code?:words by?:1..8 admin?:u64 cable?:bool
admin       action:1..17 outcome:1..8 by?:1..8 slot?:u32 person?:words role?:1..3 before?:digest after?:digest
            subject?:words text?:digest screen-digest?:digest pages?:[8:digest] shown?:ns pressed?:ns completed?:ns
            presses?:[32:press] code?:words revision?:words ref?:u64 on?:1..2 steps?:[48:step] left-out?:u16
fault       class:1..10 where?:words code?:words errno?:u32 count?:u32 segment?:u32 offset?:u64 at?:u64
suppressed  of:1..24 count:1..18446744073709551615 from?:1..8 class?:u8 slot?:u32 since?:ns
blob        purpose:1..11 digest:digest bytes:b65536
redact      seq:u64 body:digest by:1..8 purpose?:1..11 reason?:words admin?:u64
claim       from:1..8 class:1..6 code?:words text?:b512 raw-digest?:digest ask?:id ask-digest?:digest slot?:u32
            conversation?:id run-digest?:digest step?:u16 index?:u16 count?:u16 name?:b256 catalog?:digest
            model?:digest offered?:[48:words]
freeze      on:bool by:1..8 reason?:words dropped?:u32 killed?:u32
feed        id:words digest?:digest status:1..4 code?:words request-digest?:digest grant-digest?:digest bytes?:u64
            duration?:ns http-status?:u16 admin?:u64
tool        id:digest state:1..5 connection?:words server?:digest schema?:digest description?:digest
            mapping?:digest version?:octets publisher?:octets name?:b256 capability?:words raw?:digest
            before?:digest by?:1..8 admin?:u64 fixtures?:1..2
withdraw    by:1..8 slot?:u32 code?:words deny?:bool
"""

# Maps that stand inside payloads or under signatures.
OTHERS = """
press           at:ns edge:1..2 count:u32 button:1..2
step            at:ns state:1..13 cause:1..45 page?:u16
genesis-claims  version:1..1 root:digest seal-key:digest image:digest prev-log?:digest
seal-claims     size:u64 link:digest epoch:u32 first:u64 header:digest tree?:digest
receipt-claims  inv:id args-digest:digest screen-digest:digest request-digest:digest capability:t64 version:1..65535
                revision:t64 schema-digest:digest nonce-digest:digest boot-id:id shown:ns pressed:ns completed:ns
                expires:ns slot:u32 registry:t64
"""


def tables(text):
    """Read a table: name -> [(field, type, optional)], keys 1, 2, 3 …"""
    found, fields = {}, None
    for line in text.strip().splitlines():
        words = line.split()
        if not line.startswith(" "):
            fields = found.setdefault(words.pop(0), [])
        for word in words:
            name, kind = word.split(":", 1)
            fields.append((name.rstrip("?"), kind, name.endswith("?")))
    return found


KINDS = tables(PAYLOADS)
NAMES = [None, *KINDS]  # by number
MAPS = {**KINDS, **tables(OTHERS)}


class Malformed(Exception):
    """Bytes that are not what the format says."""


class Cut(Malformed):
    """Bytes that end too early."""


def need(holds, why, error=Malformed):
    if not holds:
        raise error(why)


# Deterministic CBOR (RFC 8949 section 4.2.1), without floats, tags, null and indefinite lengths.


def head(data, at):
    """Read one CBOR head: (major type, argument, offset behind it)."""
    need(at < len(data), "the bytes end within a value", Cut)
    major, low = data[at] >> 5, data[at] & 31
    if low < 24:
        return major, low, at + 1
    need(low < 28, "an indefinite or reserved length")
    end = at + 1 + (1 << (low - 24))
    need(end <= len(data), "the bytes end within a value", Cut)
    value = int.from_bytes(data[at + 1 : end], "big")
    need(value >= (24 if low == 24 else 1 << (4 << (low - 24))), "a longer encoding than need be")
    return major, value, end


def take(data, at, depth=0):
    """Read one value: (value, offset behind it)."""
    need(depth <= MAX_NESTING, "nested too deep")
    major, n, at = head(data, at)
    if major < 2:
        return (n if major == 0 else -1 - n), at
    if major < 4:
        need(n <= len(data) - at, "the bytes end within a value", Cut)
        piece = bytes(data[at : at + n])
        try:
            return (piece if major == 2 else piece.decode("utf-8")), at + n
        except UnicodeDecodeError:
            raise Malformed("text is not UTF-8") from None
    need(major in (4, 5) or (major == 7 and n in (20, 21)), "a float, a tag, or another simple value")
    if major == 7:
        return n == 21, at
    need(n <= MAX_LIST, "a list or map is too long")
    items, last = [], b""
    for _ in range(n):
        if major == 5:
            start = at
            key, at = take(data, at, depth + 1)
            need(type(key) is int and data[start:at] > last, "map keys are no numbers, or not in order")
            last = data[start:at]
        item, at = take(data, at, depth + 1)
        items.append(item if major == 4 else (key, item))
    return (items if major == 4 else dict(items)), at


def piece(data, at, most):
    """Read a byte string of at most most bytes: (value, offset behind it)."""
    need(at == len(data) or 0x40 <= data[at] < 0x5B, "no byte string, or one that is too long")
    _, n, at = head(data, at)
    need(n <= most, "a byte string is too long")
    need(n <= len(data) - at, "the bytes end within a value", Cut)
    return data[at : at + n], at + n


def whole(data):
    """Read the one value that data is."""
    value, end = take(data, 0)
    need(end == len(data), "bytes after the end")
    return value


def start(major, n):
    for low, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 24:
            return bytes([major << 5 | n])
        if n < 1 << (8 * size):
            return bytes([major << 5 | low]) + n.to_bytes(size, "big")
    raise ValueError("number too large")


def encode(value):
    """Encode numbers, truth values, bytes, text, lists and maps."""
    if type(value) is bool:
        return b"\xf5" if value else b"\xf4"
    if type(value) is int:
        return start(0, value) if value >= 0 else start(1, -1 - value)
    if type(value) is list:
        return start(4, len(value)) + b"".join(map(encode, value))
    if type(value) is dict:
        pairs = sorted((encode(k), encode(v)) for k, v in value.items())
        return start(5, len(pairs)) + b"".join(k + v for k, v in pairs)
    data = value if type(value) is bytes else value.encode()
    return start(2 if type(value) is bytes else 3, len(data)) + data


# Values, by the types in the tables: what they are in Python, and from what to what they or their lengths go.

TYPES = {"digest": (bytes, 32, 32), "id": (bytes, 16, 16), "octets": (bytes, 0, 1024), "b256": (bytes, 0, 256)}
TYPES.update({"b512": (bytes, 0, 512), "b65536": (bytes, 0, 65536), "words": (str, 0, 1024), "t64": (str, 0, 64)})
TYPES.update({f"u{bits}": (int, 0, (1 << bits) - 1) for bits in (8, 16, 32, 64)})
TYPES.update({"ns": (int, 0, (1 << 63) - 1), "int": (int, -1 << 63, (1 << 63) - 1), "bool": (bool, 0, 1)})
# Characters that are in no text, as FORMAT.md lists them.
BARRED = re.compile(
    "[\0-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064"
    "\u2066-\u206f\ue000-\uf8ff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000f0000-\U000ffffd\U00100000-\U0010fffd]"
)


def fits(kind, value):
    """Whether value is of a type and within its limits. For a map, Malformed says why it is not."""
    if kind[0] == "[":
        most, of = kind[1:-1].split(":")
        return type(value) is list and len(value) <= int(most) and all(fits(of, v) for v in value)
    if kind == "open-intent":
        return type(value) is list and len(value) == 2 and fits("u64", value[0]) and fits("id", value[1])
    if kind in MAPS:
        return bool(named(kind, value))
    of, low, high = TYPES[kind] if kind in TYPES else (int, *map(int, kind.split("..")))
    if type(value) is not of:
        return False
    size = len(value) if of is bytes else len(value.encode()) if of is str else value
    return low <= size <= high and not (kind == "words" and BARRED.search(value))


def empty(kind, value):
    """Whether an optional field should have been left out."""
    return not any(value) if kind in ("digest", "id") else not value


def named(kind, value):
    """Check a map against its table and return it by the names of its fields."""
    if type(value) is not dict:
        raise Malformed(f"{kind} is not a map")
    fields = MAPS[kind]
    if not value.keys() <= set(range(1, len(fields) + 1)):
        raise Malformed(f"{kind} has a field that there is not")
    out = {}
    for key, (name, of, optional) in enumerate(fields, 1):
        if key not in value:
            if not optional:
                raise Malformed(f"{kind} lacks {name}")
        elif not fits(of, value[key]) or (optional and empty(of, value[key])):
            raise Malformed(f"{kind} has a {name} that is out of range, or empty")
        else:
            out[name] = value[key]
    return out


class Record:
    """A decoded body. r["name"] is a field of its payload, None where it was left out."""

    def __init__(self, body):
        top = whole(body)
        need(type(top) is dict and {0, 1, 2, 3, 5, 6, 8} <= top.keys() <= set(range(9)), "a record has the wrong fields")
        for key, of in enumerate(("1..24", "u64", "id", "ns", "1..8640000000000000", "0..2", "id", "id")):
            need(key not in top or fits(of, top[key]), f"a record has a bad field {key}")
        need((4 in top) == (top[5] != 0), "wall clock and clock state differ")
        need(any(top.get(7, b"\1")), "an invocation is zero")
        self.top, self.kind, self.seq, self.boot, self.time, self.inv = top, NAMES[top[0]], top[1], top[2], top[3], top.get(7)
        self.payload = named(self.kind, top[8])
        need(len(body) <= (MAX_BLOB_BODY if self.kind == "blob" else MAX_BODY), "a body is too long")
        self.check()

    def __getitem__(self, name):
        return self.payload.get(name)

    def check(self):
        """What a payload must keep beside the limits of its fields."""
        kind = self.kind
        if kind == "proposal" and self["capability"]:
            need(capability(self["capability"]), "no name of a capability")
        elif kind == "decision" and self["verdict"] == REFUSE:
            need(self["status"] in (2, 4, 5, 6, 7, 8), "a refusal that does not say how it ended")
        elif kind == "decision":
            need(not self["status"] and not self["code"], "only a refusal has a status or a code")
        elif kind == "approval":
            need((self["outcome"] == APPROVED) == bool(self["receipt"]), "a receipt goes with approved, and with nothing else")
        elif kind in ("prune", "export"):
            need(self["first-segment"] <= self["last-segment"], "a range runs backwards")
            need(kind == "export" or self["first"] <= self["last"], "a range runs backwards")
        elif kind == "blob":
            need(self["digest"] == sha(self["bytes"]), "a blob's digest is not of its bytes")
        elif kind == "feed":
            need(self["id"], "a feed has no id")


def capability(name):
    return len(name) <= 64 and re.fullmatch(r"[a-z0-9]+(\.[a-z0-9]+){0,3}", name)


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def link(previous, kind, digest):
    return sha(b"assent/audit/v1\0", previous, bytes([kind]), digest)


class Frame:
    """One frame. body is None in a redacted blob, of which only the digest is left."""

    def __init__(self, data, at):
        need(data[at : at + 1] == b"\x83", "no frame" if at < len(data) else "the file ends in a batch")
        self.kind, at = take(data, at + 1)
        content, at = take(data, at)
        self.link, self.end = take(data, at)
        need(type(self.kind) is int and self.kind in (RECORD, BLOB) and fits("digest", self.link), "no frame")
        if type(content) is list:
            need(self.kind == BLOB and len(content) == 1 and fits("digest", content[0]), "no redacted frame")
            self.body, self.digest = None, content[0]
        else:
            need(type(content) is bytes and len(content) <= MAX_BLOB_BODY, "no frame")
            self.body, self.digest = content, sha(content)

    def record(self):
        """The record, or None where it was redacted."""
        if self.body is None:
            return None
        record = Record(self.body)
        need((record.kind == "blob") == (self.kind == BLOB), "a blob outside a blob frame, or another record in one")
        return record


class Signed:
    """A COSE_Sign1 as the format allows it."""

    def __init__(self, what, data):
        need(data[:1] == b"\xd2", f"the {what} is no tagged COSE_Sign1")
        parts = whole(data[1:])
        self.protected = encode({1: -8, 3: f"application/assent-{what}+cbor"})
        need(type(parts) is list and len(parts) == 4 and parts[0] == self.protected, f"the {what} has another header")
        need(type(parts[1]) is dict and not parts[1], f"the {what} has an unprotected header")
        need(type(parts[2]) is bytes and type(parts[3]) is bytes and len(parts[3]) == 64, f"the {what} is no COSE_Sign1")
        self.what, self.content, self.signature = what, parts[2], parts[3]
        self.claims = named(f"{what}-claims", whole(self.content))

    def verifies(self, key):
        message = encode(["Signature1", self.protected, f"assent/{self.what}/v1".encode(), self.content])
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(self.signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


def seal_of(record, before):
    """The seal in a record, with claims that are true of the record and of the link before it."""
    signed = Signed("seal", record["sign1"])
    bare = {**record.top, 8: {1: b""}}
    want = {"size": record.seq, "link": before, "header": sha(encode(bare))}
    need(want.items() <= signed.claims.items(), "a seal's claims are not true")
    return signed


def genesis_of(record):
    """The root key and the keys of epoch 0."""
    need(record.kind == "genesis" and record.seq == 0, "no genesis")
    signed = Signed("genesis", record["statement"])
    need(signed.claims["root"] == record["root"], "the genesis statement is of another root key")
    need(signed.verifies(record["root"]), "the genesis statement does not verify")
    return record["root"], (0, signed.claims["seal-key"], ZERO, ZERO)


def keys_of(record):
    """The keys that an epoch or segment record names: (epoch, seal key, receipt key, grant key)."""
    n = record["n"] if record.kind == "epoch" else record["epoch"]
    return (n, record["seal-key"], record["receipt-key"], record["grant-key"])


class Anchors:
    """The file anchors.cborseq, read from the root key to ever later epochs."""

    def __init__(self, file):
        self.file, self.data = file, b""  # data is what was read and not yet taken
        self.root = self.keys = self.bodies = None

    def advance(self):
        """Follow one more entry. False where none is whole any more."""
        self.data += self.file.read(MAX_ANCHOR - len(self.data))
        begins, at, parts = self.data[:2], 2, []
        need(any(kind.startswith(begins) for kind in (b"\x82\0", b"\x84\1")), "no anchor")
        genesis = begins == b"\x82\0"
        try:
            need(len(begins) == 2, "the bytes end within an anchor", Cut)
            for most in (MAX_BODY,) if genesis else (32, MAX_BODY, MAX_BODY):
                part, at = piece(self.data, at, most)
                parts.append(part)
                need(genesis or len(parts[0]) == 32, "an anchor's link is not 32 bytes")
        except Cut:  # power was lost while it was written
            return False
        self.data = self.data[at:]
        need((self.root is None) == genesis, "the genesis is the first anchor, and only that")
        self.bodies = parts if genesis else parts[1:]
        if genesis:
            self.root, self.keys = genesis_of(Record(parts[0]))
            return True
        epoch, seal = Record(parts[1]), Record(parts[2])
        need((epoch.kind, seal.kind, seal.seq) == ("epoch", "seal", epoch.seq + 1), "an anchor is no epoch's")
        need(epoch["n"] == self.keys[0] + 1, "an anchor is not the next epoch's")
        signed = seal_of(seal, link(parts[0], RECORD, sha(parts[1])))
        need(signed.claims["epoch"] == self.keys[0] and signed.verifies(self.keys[1]), "an anchor's seal does not verify")
        self.keys = keys_of(epoch)
        return True


class Calls:
    """The rules for invocations: each is a map of what the log said of it."""

    KINDS = ("proposal", "decision", "approval", "intent", "effect", "withdraw")

    def __init__(self):
        self.live, self.ended = {}, {}  # what ended, oldest first
        self.boot = None
        self.partial = False  # the beginning of the log is gone: until the next start, calls appear in their middle

    def open(self):
        return sorted([call["intent"], inv] for inv, call in self.live.items() if "intent" in call)

    def restart(self, boot):
        """A start ends all but the promised effects. What ended stays ended until the kernel's boot is another."""
        self.live = {inv: call for inv, call in self.live.items() if "intent" in call}
        if boot != self.boot:
            self.ended = {}
        self.boot, self.partial = boot, False

    def end(self, inv):
        del self.live[inv]
        self.ended[inv] = True

    def trim(self):
        """Between batches, forget the oldest that ended."""
        for inv in list(self.ended)[: max(0, len(self.ended) - MAX_ENDED)]:
            del self.ended[inv]

    def take(self, r, unsealed, receipt_key):
        """Check one record. unsealed is the first record that no seal follows yet."""
        need(r.inv, f"a {r.kind} without an invocation")
        need(r.inv not in self.ended, "an invocation goes on after its end")
        call = self.live.get(r.inv)
        if r.kind == "proposal":
            need(call is None, "an invocation is proposed twice")
            need(len(self.live) < MAX_LIVE, "too many invocations at one time")
            self.live[r.inv] = {"proposal": r}
        elif call is None:
            need(self.partial, "an invocation that was not proposed")
            if r.kind == "intent":
                self.live[r.inv] = {"intent": r.seq}
        elif r.kind == "effect":
            need(call.get("intent") == r["intent"], "an effect without its intent")
            need(r["intent"] < unsealed, "an effect before its intent was sealed")
            self.end(r.inv)
        elif r.kind != "withdraw":
            getattr(self, r.kind)(r, call, receipt_key)

    def decision(self, r, call, _):
        need("intent" not in call, "a decision after the intent")
        if r["verdict"] == REFUSE:
            self.end(r.inv)
        elif r["stage"] != POLICY:
            need(r["verdict"] != CONFIRM, "only policy asks for a press")
        else:
            need("policy" not in call, "policy decides twice")
            need(call["proposal"]["capability"] and call["proposal"]["args-digest"], "policy passes what was not validated")
            call["policy"] = r

    def approval(self, r, call, receipt_key):
        need("policy" in call and call["policy"]["verdict"] == CONFIRM, "an approval that policy did not ask for")
        need("approval" not in call and "intent" not in call, "a second approval, or a late one")
        call["approval"] = r
        if r["outcome"] != APPROVED:
            return
        need(r["by"] == BOX, "approved by somebody who is not at the box")
        signed = Signed("receipt", r["receipt"])
        need(signed.verifies(receipt_key), "the receipt does not verify")
        claims, proposal = signed.claims, call["proposal"]
        for name in ("inv", "screen-digest", "nonce-digest", "boot-id"):
            need(any(claims[name]), f"the receipt has no {name}")
        need(len(signed.content) <= 768 and capability(claims["capability"]), "the receipt keeps no limits")
        same = {"inv": r.inv, "boot-id": r.boot, "args-digest": proposal["args-digest"]}
        same.update({name: r[name] or ZERO for name in ("screen-digest", "request-digest")})
        same.update({name: r[name] or 0 for name in ("shown", "pressed", "completed", "expires")})
        same.update({name: proposal[name] or 0 for name in ("capability", "version", "slot")})
        same.update({"revision": proposal["revision"] or "", "schema-digest": proposal["schema-digest"] or ZERO})
        for name, value in same.items():
            need(claims[name] == value, f"the receipt has another {name}")
        need(r["args-digest"] == claims["args-digest"], "the approval is of other arguments")
        times = [claims[name] for name in ("shown", "pressed", "completed", "expires")]
        need(times == sorted(times) and times[3] > 0, "the receipt's times are out of order")

    def intent(self, r, call, _):
        need(len(self.open()) < MAX_OPEN, "too many effects at one time")
        need("policy" in call and "intent" not in call, "an intent that policy did not allow, or a second one")
        approval = call.get("approval")
        if call["policy"]["verdict"] == CONFIRM:
            need(approval and approval["outcome"] == APPROVED, "policy asked for a press that was not given")
            need(r["request-digest"] == approval["request-digest"], "an intent for another request than was shown")
        need(r["proposal"] == call["proposal"].seq and r["decision"] == call["policy"].seq, "an intent of other records")
        need(r["approval"] == (approval and approval.seq), "an intent of another approval")
        need(r["receipt-digest"] == (approval and sha(approval["receipt"])), "an intent of another receipt")
        need(r["args-digest"] == call["proposal"]["args-digest"], "an intent for other arguments than proposed")
        call["intent"] = r.seq


OTHER_SEAL = "not the seal that was kept elsewhere: the log was changed since, or that seal is another box's"


class Problem(Exception):
    """The first thing that is wrong, and where. verdict is None where it must still be found out; what is wrong of the log as
    a whole is at no place."""

    def __init__(self, text, segment, offset, seq, verdict=None, placed=True):
        super().__init__(text)
        self.segment, self.offset, self.seq, self.verdict, self.placed = segment, offset, seq, verdict, placed

    def __str__(self):
        place = f"segment {self.segment} offset {self.offset}: record {self.seq}: " if self.placed else ""
        return place + self.args[0]


class Verifier:
    """Reads one log from its first frame to its last, and remembers what later records must agree with."""

    def __init__(self, segments, anchors, kept=(), all_seals=False, root=None, head=None, withheld=False, pruned=False):
        self.segments = segments  # [(number, path)], in order
        self.all_seals, self.want_root, self.may_withhold, self.may_be_pruned = all_seals, root, withheld, pruned
        self.want_head = head  # a code that was not met yet
        self.anchors = Anchors(anchors)
        self.kept = [signed.claims for signed in kept]  # seals that were not met yet
        self.calls = Calls()
        self.root = self.keys = self.begun = None
        self.link, self.seq, self.unsealed, self.first = ZERO, 0, 0, 0
        self.boot, self.time = None, 0
        self.exported = self.export = self.approved = self.pruned = 0
        self.last_prune = None
        self.lost = False  # there were too many missing blobs to remember
        self.missing, self.redacted = {}, 0  # redacted blobs that no record explains yet; how many were explained
        self.seals, self.last_seal, self.head = 0, None, None

    def run(self):
        """Return the verdict and the first problem."""
        try:
            self.walk()
        except Problem as found:
            problem = found
            verdict = found.verdict or (ALTERED if self.sealed_after(found) else INCOMPLETE)
        else:
            verdict, problem = INTACT, None
        if verdict != ALTERED and self.last_seal and not self.last_seal.verifies(self.keys[1]):
            return ALTERED, self.at_end("the last seal does not verify", ALTERED, self.last_seal.claims["size"])
        if problem is None:
            problem = self.conclude()
            verdict = problem.verdict if problem else INTACT
        return verdict, problem

    def sealed_after(self, problem):
        """Whether another segment, or a whole seal at any offset, follows what is wrong."""
        number, path = self.segments[-1]
        if problem.segment != number:
            return True
        data = read(path)
        at = data.find(b"\x83\x00", problem.offset + 1)
        while at >= 0:
            try:
                Signed("seal", Frame(data, at).record()["sign1"] or b"")
                return True
            except Malformed:
                at = data.find(b"\x83\x00", at + 1)
        return False

    def at_end(self, text, verdict, seq=None):
        return Problem(text, self.segments[-1][0], 0, self.seq if seq is None else seq, verdict, placed=False)

    def walk(self):
        due = self.segments[0][0]
        for number, path in self.segments:
            if number != due:
                raise Problem(f"segment {due} is missing", due, 0, self.seq, INCOMPLETE, placed=False)
            due += 1
            self.segment(number, read(path))

    def segment(self, number, data):
        at = 0
        while at < len(data) and data[at]:
            end = self.batch(number, data, at)
            at = min(-(-end // BLOCK) * BLOCK, len(data))
            self.zeros("padding is not zero", number, data, end, at)
        self.zeros("bytes after the last seal", number, data, at, len(data))
        if len(data) != SEGMENT:
            raise Problem("a segment is not 1,048,576 bytes", number, len(data), self.seq)
        if at == 0 and (self.keys is None or number != self.segments[-1][0]):
            raise Problem("nothing was sealed", number, len(data), self.seq)

    def zeros(self, why, number, data, start, end):
        rest = data[start:end].lstrip(b"\0")
        if rest:
            raise Problem(why, number, end - len(rest), self.seq)

    def batch(self, number, data, start):
        """Read one batch; return the offset behind its seal."""
        at, kinds = start, []
        while not kinds or kinds[-1] != "seal":
            linked = False
            try:
                frame = Frame(data, at)
                linked = link(self.link, frame.kind, frame.digest) == frame.link
                record = frame.record()
                kinds.append(record.kind if record else "blob")
                self.place(number, start, kinds)
                if self.keys is None and number > 0:
                    self.begin(record)
                    linked = link(self.link, frame.kind, frame.digest) == frame.link
                need(linked, "the link does not follow")
                if record is None and len(self.missing) == MAX_MISSING:
                    self.lost = True
                elif record is None:
                    self.missing[self.seq] = frame.digest
                else:
                    need(record.seq == self.seq, "the sequence number does not follow")
                    self.record(record, frame, number)
            except Malformed as why:
                raise Problem(str(why), number, at, self.seq, ALTERED if linked else None) from None
            self.link, self.seq, at = frame.link, self.seq + 1, frame.end
        self.unsealed, self.head = self.seq, self.link
        return at

    def place(self, number, start, kinds):
        """What may stand where."""
        opens = start == 0 and len(kinds) == 1
        need((kinds[-1] == "genesis") == (opens and number == 0), "genesis is record 0, and only that")
        need((kinds[-1] == "segment") == (opens and number > 0), "each segment but 0 begins with its record, and only there")
        alone = kinds[0] != "segment" or kinds[1:] in ([], ["seal"], ["epoch"], ["epoch", "seal"])
        need(alone, "the segment record is not a batch of its own")
        need("epoch" not in kinds[:-1] or kinds[-2:] == ["epoch", "seal"], "an epoch that no seal follows")

    def begin(self, record):
        """A log that was pruned begins with what its first segment record says, if anchors lead to those keys."""
        while self.anchors.advance() and self.anchors.keys[0] < record["epoch"]:
            pass
        if self.anchors.keys and self.anchors.keys[0] == record["epoch"]:
            need(self.anchors.keys == keys_of(record), "the segment names other keys than the anchors")
            self.root = self.anchors.root
        self.begun, self.keys = record, keys_of(record)
        self.link, self.seq = record["prev-link"], record["first"]
        self.unsealed = self.first = self.seq
        self.exported, self.export = record["exported"] or 0, record["export"] or 0
        self.pruned, self.calls.partial = record["pruned"] or 0, True
        self.calls.live = {inv: {"intent": seq} for seq, inv in record["open"] or []}

    def record(self, r, frame, number):
        need(any(r.boot), "a boot id is zero")
        if r.kind not in ("genesis", "segment", "boot"):
            need(r.boot == self.boot, "a boot id that no boot record announced")
            need(r.time >= self.time, "boot time runs backwards")
        self.boot, self.time = r.boot, r.time
        if r.kind in Calls.KINDS:
            self.calls.take(r, self.unsealed, self.keys[2])
        elif hasattr(self, "on_" + r.kind):
            getattr(self, "on_" + r.kind)(r, frame, number)

    def on_genesis(self, r, frame, _):
        self.root, self.keys = genesis_of(r)
        need(not self.anchors.advance() or self.anchors.bodies == [frame.body], "the anchors are of another log")

    def on_segment(self, r, _, number):
        need(r["index"] == number and r["first"] == self.seq and r["prev-link"] == self.link, "the segment record is misplaced")
        need(keys_of(r) == self.keys, "the segment record names other keys than those in force")
        need((r["open"] or []) == self.calls.open(), "the segment record names other open intents")
        kept = (self.exported, self.export, self.pruned)
        need((r["exported"] or 0, r["export"] or 0, r["pruned"] or 0) == kept, "the segment record has another export or prune")

    booting = False  # a boot record was read, and its epoch was not

    def on_boot(self, r, *_):
        self.booting = True
        self.calls.restart(r.boot)

    def on_epoch(self, r, frame, _):
        need(r["n"] == self.keys[0] + 1, "the epoch is not the next one")
        need((r["reason"] == START) == self.booting, "a start, and only a start, begins an epoch for that reason")
        need(r["reason"] == START or keys_of(r)[2:] == self.keys[2:], "other receipt or grant keys without a start")
        self.coming = (keys_of(r), frame.body)

    def on_seal(self, r, frame, _):
        signed = seal_of(r, self.link)
        need((signed.claims["epoch"], signed.claims["first"]) == (self.keys[0], self.unsealed), "a seal's claims are not true")
        need(self.coming or not self.booting, "a start without a new key")
        self.calls.trim()
        need(all(c == signed.claims for c in self.kept if c["size"] == r.seq), OTHER_SEAL)
        self.kept = [c for c in self.kept if c["size"] != r.seq]
        if code(frame.link) == self.want_head:
            self.want_head = None
        if self.all_seals or self.coming:
            need(signed.verifies(self.keys[1]), "the seal does not verify")
        self.seals, self.last_seal = self.seals + 1, signed
        if self.coming:
            (self.keys, epoch), self.coming, self.last_seal, self.booting = self.coming, None, None, False
            if self.root and self.anchors.advance():
                need(self.anchors.bodies == [epoch, frame.body], "the anchors name another epoch")

    coming = None  # keys and body of an epoch record whose seal is due

    def on_export(self, r, *_):
        if r["ok"] and not r["redacted"] and not r["cable"]:
            need(r["last"] < r.seq, "an export holds later records than itself")
            if r["last"] >= self.exported:
                self.exported, self.export = r["last"], r.seq

    def on_admin(self, r, *_):
        if r["action"] == PRUNE and r["outcome"] == APPROVED:
            need(r["by"] == BOX, "approved by somebody who is not at the box")
            self.approved = r.seq

    def on_prune(self, r, _, number):
        need(r["last"] < r.seq and r["last-segment"] < number, "a prune record removes what is not there yet")
        need(r["first-segment"] == self.pruned, "a prune record does not continue the last one")
        need((r["export"] is None) != (r["admin"] is None), "a prune record needs an export or an approval")
        if r["export"]:
            need(r["export"] == self.export and r["last"] <= self.exported, "no good export holds what was pruned")
        else:
            need(r["admin"] == self.approved or r["admin"] < self.first, "nobody at the box approved of pruning")
        self.pruned, self.last_prune = r["last-segment"] + 1, r

    def on_redact(self, r, *_):
        need(r["seq"] < r.seq, "a later record is redacted")
        if self.missing.get(r["seq"]) == r["body"]:
            del self.missing[r["seq"]]
            self.redacted += 1

    def conclude(self):
        """What can be said only at the end of a log in which nothing else is wrong: a Problem or None."""
        if self.begun:
            first, where = self.begun["index"], (self.begun["index"], 0, self.first)
            if self.pruned < first:
                return Problem(f"segment {self.pruned} is missing", self.pruned, 0, 0, INCOMPLETE, placed=False)
            if self.root is None:
                return Problem("anchors do not lead from the root key to this segment", *where, INCOMPLETE, placed=False)
            prune = self.last_prune
            if prune and prune["last-segment"] == first - 1:
                if (prune["last"], prune["last-link"]) != (self.first - 1, self.begun["prev-link"]):
                    return Problem("the segment does not follow what was pruned", *where, ALTERED, placed=False)
        if self.want_root and self.root != self.want_root:
            return Problem("the log was begun by another root key than the one given", 0, 0, 0, ALTERED, placed=False)
        for claims in self.kept:
            if claims["size"] >= self.seq:
                return self.at_end("the log ends before a seal that was kept elsewhere: it was rolled back", INCOMPLETE)
            if claims["size"] >= self.first:
                return self.at_end(OTHER_SEAL, ALTERED)
            if not self.may_be_pruned:
                return self.at_end("what a seal that was kept elsewhere is of was pruned", INCOMPLETE)
        try:
            if self.anchors.advance():
                return self.at_end("the anchors know a later epoch: the log was rolled back", INCOMPLETE)
        except Malformed as why:
            return self.at_end(f"anchors: {why}", ALTERED)
        if self.want_head:
            return self.at_end(f"no record has the code {self.want_head}: check that it was copied rightly; if it was, the log was rolled back or is another box's", INCOMPLETE)
        if self.lost:
            return self.at_end("more blobs are missing at one time than can be accounted for", INCOMPLETE)
        if self.missing and not self.may_withhold:
            return self.at_end(f"{len(self.missing)} blobs were left out, and no record says why", INCOMPLETE)
        return None


CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def code(head_link):
    """A head in eight characters: its first 40 bits."""
    bits = int.from_bytes(head_link[:5], "big")
    return "".join(CROCKFORD[bits >> shift & 31] for shift in range(35, -1, -5))


class Usage(Exception):
    """What whoever called this did wrong."""


class Nothing(Exception):
    """Why there is nothing to judge."""


def regular(path):
    """Open a file of a log. What is none is not opened: a pipe waits for a writer, and where a link leads nobody knows."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise Nothing(f"{path}: not a file: a log is made of files only")
    return open(path, "rb")


def read(path):
    """Read a segment, and no more than one byte too many."""
    with regular(path) as file:
        return file.read(SEGMENT + 1)


def seals_in(path):
    """Read seals that were kept: one as it is, or any number in base64 or base64url, each on a line; # begins a remark."""
    with open(path, "rb") as file:
        data = file.read(SEGMENT)
    kept = [data]
    if data[:1] != b"\xd2":
        lines = [line.strip().rstrip(b"=") for line in data.splitlines()]
        try:
            padded = [line + b"=" * (-len(line) % 4) for line in lines if line and line[:1] != b"#"]
            kept = [base64.b64decode(line.translate(bytes.maketrans(b"-_", b"+/")), validate=True) for line in padded]
        except binascii.Error:
            kept = []
    try:
        need(kept, "neither one seal nor seals in base64, each on a line")
        return [Signed("seal", seal) for seal in kept]
    except Malformed as why:
        raise Usage(f"{path} holds no seals: {why}") from None


def root_key(text):
    """A root key in hexadecimal."""
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    need(len(key) == 32 and any(key), "a root key is 64 hexadecimal digits, and not only zeros", Usage)
    return key


def head_code(text):
    """A head's code as people write it down."""
    plain = text.upper().replace("-", "").translate(str.maketrans("OIL", "011"))
    need(len(plain) == 8 and set(plain) <= set(CROCKFORD), "a head's code is 8 characters, as the panel shows it", Usage)
    return plain


MARKER = "REDACTED.txt"  # beside the segments of a copy from which literal texts were left out on purpose


def verify(path, anchors=(), root=None, head=None, withheld=False, **options):
    """Verify the log in a directory and return a report as a map."""
    try:
        for where in (path, os.path.join(path, "log")):
            names = sorted(os.listdir(where)) if os.path.isdir(where) else []
            segments = [(int(n[4:12]), os.path.join(where, n)) for n in names if re.fullmatch(r"seg-[0-9]{8}\.cborseq", n)]
            if segments:
                break
        else:
            raise Nothing(f"{path}: no segments here")
        beside = os.path.join(where, "anchors.cborseq")
        chain = regular(beside) if os.path.lexists(beside) else io.BytesIO()
        kept = [seal for name in anchors for seal in seals_in(name)]
        options.update(root=root_key(root) if root else None, head=head_code(head) if head else None)
        by = "copy" if os.path.exists(os.path.join(where, MARKER)) else "option" if withheld else None
        with chain:
            log = Verifier(segments, chain, kept, withheld=by is not None, **options)
            verdict, problem = log.run()
    except OSError as why:
        raise Nothing(str(why)) from None
    except MemoryError:
        raise Nothing("there is not enough memory for this log") from None
    report = {"verdict": verdict, "problem": problem and str(problem)}
    report.update(first=log.first, sealed=log.unsealed - log.first, unsealed=log.seq - log.unsealed, seals=log.seals)
    report.update(redacted=log.redacted, withheld=len(log.missing), epoch=log.keys and log.keys[0])
    report.update(withheld_by=by if log.missing and verdict == INTACT else None)
    report.update(head=log.head and code(log.head), root=log.root and log.root.hex())
    report.update(at=problem and {"segment": problem.segment, "offset": problem.offset, "record": problem.seq})
    return report


def main(argv):
    parser = argparse.ArgumentParser(prog="assent_verify.py", description="Verify an audit log of Assent.")
    parser.add_argument("path", nargs="?", help="the directory with the segments")
    parser.add_argument("--all-seals", action="store_true", help="verify every seal, not only the last of each epoch")
    parser.add_argument("--root", metavar="HEX", help="the root key that was noted when the box was set up")
    parser.add_argument("--head", metavar="CODE", help="a head's code (8 characters) that the panel showed; the log must hold it")
    parser.add_argument("--anchor", metavar="FILE", action="append", default=[], help="seals that a phone or an export kept; the log must hold them")
    parser.add_argument("--withheld", action="store_true", help="accept that blobs were left out and neither a record nor the copy says so")
    parser.add_argument("--pruned", action="store_true", help="accept an anchor of a part that was pruned since")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--batch", action="store_true", help="read the arguments of many logs from standard input, as JSON lines")
    try:
        args = parser.parse_args(argv)
    except SystemExit as end:
        return 3 if end.code else 0
    try:
        if args.batch:
            for line in sys.stdin:
                print(json.dumps(verify(**json.loads(line))), flush=True)
            return 0
        if not args.path:
            raise Usage("say which directory; --help explains")
        report = verify(args.path, args.anchor, args.root, args.head, args.withheld, all_seals=args.all_seals, pruned=args.pruned)
    except (Usage, Nothing) as why:
        print(f"assent_verify: {why}", file=sys.stderr)
        return 3 if isinstance(why, Usage) else 2
    if args.json:
        print(json.dumps(report))
    else:
        print(f"verdict: {report['verdict']}{left_out(report)}")
        others = (name for name in report if name not in ("verdict", "at") and report[name] is not None)
        print("\n".join(f"{name}: {report[name]}" for name in others))
    return EXIT[report["verdict"]]


def left_out(report):
    """What a verdict of intact says of texts that are not there."""
    said = {"copy": "as it says itself", "option": "as --withheld accepts"}.get(report["withheld_by"])
    count = f"{report['withheld']} literal text" + ("s were" if report["withheld"] != 1 else " was")
    return f", but {count} left out of this copy, {said}" if said else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
