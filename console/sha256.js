// SHA-256 and HMAC (FIPS 180-4, RFC 2104).  WebCrypto has them only for pages from HTTPS and
// localhost, and a login by access key must work at any address.

const K = [];
const START = [];
(function constants() {
  const fraction = (x) => ((x - Math.floor(x)) * 0x100000000) >>> 0;
  for (let n = 2; K.length < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
    if (!prime) continue;
    if (START.length < 8) START.push(fraction(Math.sqrt(n)));
    K.push(fraction(Math.cbrt(n)));
  }
})();

const turn = (x, n) => (x >>> n) | (x << (32 - n));

function block(state, view, at) {
  const w = new Uint32Array(64);
  for (let i = 0; i < 16; i++) w[i] = view.getUint32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + w[i - 7] +
      (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const t1 = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
    const t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((x, i) => { state[i] += x; });
}

export function sha256(data) {
  const padded = new Uint8Array(64 * Math.ceil((data.length + 9) / 64));
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(data.length / 0x20000000));
  view.setUint32(padded.length - 4, (data.length << 3) >>> 0);
  const state = new Uint32Array(START);
  for (let at = 0; at < padded.length; at += 64) block(state, view, at);
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((x, i) => out.setUint32(4 * i, x));
  return new Uint8Array(out.buffer);
}

const encode = (text) => new TextEncoder().encode(text);
const hex = (data) => Array.from(data, (x) => x.toString(16).padStart(2, "0")).join("");

export function hmacHex(key, text) {
  let secret = encode(key);
  if (secret.length > 64) secret = sha256(secret);
  const inner = new Uint8Array(64).fill(0x36), outer = new Uint8Array(64).fill(0x5c);
  secret.forEach((x, i) => { inner[i] ^= x; outer[i] ^= x; });
  const join = (a, b) => { const all = new Uint8Array(a.length + b.length); all.set(a); all.set(b, a.length); return all; };
  return hex(sha256(join(outer, sha256(join(inner, encode(text))))));
}

export function randomHex(digits) {
  return hex(crypto.getRandomValues(new Uint8Array(digits / 2)));
}
