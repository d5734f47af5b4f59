// The phone's key and what belongs to it, kept in IndexedDB. The private half is made so that no script, this one
// included, can read it: it can only sign.

const STORE = 'phone';

export const usable = () => Boolean(globalThis.crypto?.subtle && globalThis.indexedDB);

export const base64url = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');

export const fromBase64url = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));

export const randomHex = (n) =>
  Array.from(crypto.getRandomValues(new Uint8Array(n)), (b) => b.toString(16).padStart(2, '0')).join('');

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('assent', 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// within runs work(store) in one transaction, so that two tabs of this phone never use one counter twice.
async function within(mode, work) {
  const db = await open();
  try {
    return await new Promise((resolve, reject) => {
      const tx = db.transaction(STORE, mode);
      let result;
      work(tx.objectStore(STORE), (value) => { result = value; });
      tx.oncomplete = () => resolve(result);
      tx.onerror = () => reject(tx.error);
      tx.onabort = () => reject(tx.error);
    });
  } finally {
    db.close();
  }
}

const get = (key) => within('readonly', (store, done) => {
  const request = store.get(key);
  request.onsuccess = () => done(request.result);
});

const put = (key, value) => within('readwrite', (store) => { store.put(value, key); });

// identity is {keys, slot, name}, or undefined for a phone that is not paired.
export const identity = () => get('identity');
export const saveIdentity = (value) => put('identity', value);
export const forget = () => within('readwrite', (store) => { store.clear(); });

export const conversation = () => get('conversation');
export const saveConversation = (id) => put('conversation', id);

// remembered is what this phone keeps of the box's record: {anchor, kept, shorter}; see record.js.
export const remembered = () => get('record');
export const saveRemembered = (value) => put('record', value);

// nextCounter returns a number that is greater than any before, whether the box or this phone knew of it.
export const nextCounter = (atLeast) => within('readwrite', (store, done) => {
  const request = store.get('counter');
  request.onsuccess = () => {
    const next = Math.max(request.result ?? 0, atLeast) + 1;
    store.put(next, 'counter');
    done(next);
  };
});

const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };

export const makeKeys = () => crypto.subtle.generateKey(algorithm, false, ['sign', 'verify']);

export const publicPoint = async (keys) => base64url(await crypto.subtle.exportKey('raw', keys.publicKey));

// keyCode is what the box must show of this phone's key while it is being paired, so that nothing in between can replace it:
// twelve digits of it, made slow to imitate and different for every pairing code.
export async function keyCode(pairingCode, point) {
  const key = await crypto.subtle.importKey('raw', fromBase64url(point), 'PBKDF2', false, ['deriveBits']);
  const salt = utf8(`assent/pair/v1\0${pairingCode}`);
  const bits = await crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt, iterations: 10_000 }, key, 64);
  const digits = (new DataView(bits).getBigUint64(0) % 10n ** 12n).toString().padStart(12, '0');
  return digits.match(/..../g).join(' ');
}

// sign returns r‖s, as WebCrypto makes it.
const sign = async (keys, bytes) =>
  base64url(await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, keys.privateKey, bytes));

function join(...parts) {
  const out = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function bigEndian(value, size) {
  const out = new Uint8Array(size);
  const view = new DataView(out.buffer);
  if (size === 8) view.setBigUint64(0, BigInt(value));
  else view.setUint32(0, value);
  return out;
}

const utf8 = (text) => new TextEncoder().encode(text);
const fromHex = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));

export const signHello = (keys, slot, nonce) =>
  sign(keys, join(utf8('assent/auth/v1\0'), bigEndian(slot, 4), fromBase64url(nonce)));

export async function signAsk(keys, slot, conversationID, counter, text) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', utf8(text)));
  return sign(keys, join(utf8('assent/ask/v1\0'), bigEndian(slot, 4), fromHex(conversationID), bigEndian(counter, 8), digest));
}

export const signSeen = (keys, slot, invocation) =>
  sign(keys, join(utf8('assent/seen/v1\0'), bigEndian(slot, 4), fromHex(invocation)));
