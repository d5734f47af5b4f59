// The drawn panel: pixels in, edges out. It decides nothing.
const key = encodeURIComponent(location.hash.slice(1));
const glass = document.getElementById('glass');
const ctx = glass.getContext('2d');
const lamp = document.getElementById('lamp');
const state = document.getElementById('state');
const APPROVE = 1, DENY = 2, PRESS = 1, RELEASE = 2;

function draw(view) {
  const ram = Uint8Array.from(atob(view.frame), c => c.charCodeAt(0));
  const img = ctx.createImageData(128, 64);
  for (let y = 0; y < 64; y++) {
    for (let x = 0; x < 128; x++) {
      const lit = ram[(y >> 3) * 128 + x] >> (y & 7) & 1;
      img.data.set(lit ? [205, 232, 255, 255] : [5, 7, 10, 255], (y * 128 + x) * 4);
    }
  }
  ctx.putImageData(img, 0, 0);
  glass.style.filter = view.lost ? '' : `brightness(${.5 + view.contrast / 254})`; // 1 at the contrast that a box comes with
  glass.classList.toggle('lost', view.lost);
  lamp.className = ['', 'waiting', 'holding', 'alarm'][view.signal] ?? '';
  state.textContent = view.lost ? 'The guard is not running. Nothing can be approved.' : '';
}

const source = new EventSource('/view?key=' + key);
source.onmessage = e => draw(JSON.parse(e.data));
source.onerror = () => { state.textContent = key ? 'assentsim does not answer. Is it running?' : 'Open the address that assentsim printed, with its key.'; };

// Edges are sent one after the other, so that a press and its release cannot overtake each other.
let queue = Promise.resolve();
const down = new Set();
function move(button, edge) {
  if (down.has(button) === (edge === PRESS)) return;
  edge === PRESS ? down.add(button) : down.delete(button);
  for (const b of document.querySelectorAll('[data-button]')) b.classList.toggle('down', down.has(Number(b.dataset.button)));
  queue = queue.then(() => fetch('/edge?key=' + key, { method: 'POST', body: JSON.stringify({ button, edge }) })).catch(() => {});
}
function holds(element, buttons) {
  element.addEventListener('pointerdown', e => { element.setPointerCapture(e.pointerId); for (const b of buttons) move(b, PRESS); });
  for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) element.addEventListener(end, () => { for (const b of buttons) move(b, RELEASE); });
  element.addEventListener('contextmenu', e => e.preventDefault());
  element.addEventListener('keydown', e => { if ((e.key === ' ' || e.key === 'Enter') && !e.repeat) { e.preventDefault(); for (const b of buttons) move(b, PRESS); } });
  element.addEventListener('keyup', e => { if (e.key === ' ' || e.key === 'Enter') for (const b of buttons) move(b, RELEASE); });
}
holds(document.getElementById('approve'), [APPROVE]);
holds(document.getElementById('deny'), [DENY]);
holds(document.getElementById('both'), [APPROVE, DENY]);
const letters = { a: APPROVE, d: DENY };
addEventListener('keydown', e => { const b = letters[e.key.toLowerCase()]; if (b && !e.repeat && !e.metaKey && !e.ctrlKey) move(b, PRESS); });
addEventListener('keyup', e => { const b = letters[e.key.toLowerCase()]; if (b) move(b, RELEASE); });
addEventListener('blur', () => { move(APPROVE, RELEASE); move(DENY, RELEASE); });

// The simulated stick is a file on this machine; the real exporter and the real guard deal with it.
const stick = document.getElementById('stick');
const where = document.getElementById('where');
let inserted = false;
stick.addEventListener('click', async () => {
  stick.disabled = true;
  try {
    const r = await fetch('/stick?key=' + key, { method: 'POST', body: JSON.stringify({ in: !inserted }) });
    const text = await r.text();
    if (r.ok) inserted = !inserted;
    stick.textContent = inserted ? 'pull the stick out' : 'insert a stick';
    where.textContent = text && (inserted || !r.ok) ? text : where.textContent;
  } finally {
    stick.disabled = false;
  }
});
