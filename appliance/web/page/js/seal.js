// The seal of the box's record, as far as this page reads one: which record it says that it is of. Its signature is not
// checked here, since only the whole record proves the key. Anything but the one encoding of the audit's format is none.

import { fromBase64url } from './keys.js';

const TYPE = 'application/assent-seal+cbor';

// recordOf returns the sequence number of the record that a seal in base64url names, or null where it is no seal.
export function recordOf(seal) {
  let b;
  try {
    b = fromBase64url(seal);
  } catch {
    return null;
  }
  let at = 0;
  const is = (...bytes) => bytes.every((byte) => b[at++] === byte);
  // head reads the argument of an item of a major type in its shortest form.
  const head = (major) => {
    const first = b[at++];
    if (first >> 5 !== major || (first & 31) > 27) return NaN;
    const size = (first & 31) < 24 ? 0 : 1 << ((first & 31) - 24);
    let n = size ? 0 : first & 31;
    for (let i = 0; i < size; i++) n = n * 256 + (b[at++] ?? NaN);
    const least = { 0: 0, 1: 24, 2: 256, 4: 65536, 8: 2 ** 32 }[size];
    return n >= least && Number.isSafeInteger(n) ? n : NaN;
  };
  const digest = (key) => is(key, 0x58, 32) && (at += 32) <= b.length;
  // A tagged COSE_Sign1 (RFC 9052): protected header {1: -8, 3: TYPE}, no other, the claims, the signature.
  const prefix = [0xa2, 1, 0x27, 3, 0x78, TYPE.length, ...new TextEncoder().encode(TYPE)];
  if (!is(0xd2, 0x84) || head(2) !== prefix.length || !is(...prefix) || !is(0xa0)) return null;
  const end = head(2) + at;
  const fields = b[at++];
  if (fields !== 0xa5 && fields !== 0xa6) return null;
  const size = is(1) ? head(0) : NaN;
  if (!digest(2) || !is(3) || !(head(0) < 2 ** 32) || !is(4) || Number.isNaN(head(0)) || !digest(5)) return null;
  if (fields === 0xa6 && !digest(6)) return null;
  if (at !== end || !is(0x58, 64) || at + 64 !== b.length || Number.isNaN(size)) return null;
  return size;
}
