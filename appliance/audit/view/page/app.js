'use strict';
// The page: which event is open is in the address, so that going back goes back.
{
  const { el, byID, words } = assent;
  let open = null; // the row of the open event
  let listScroll = 0;

  assent.markOpen = () => {
    for (const node of document.querySelectorAll('.event')) {
      if (open && Number(node.dataset.first) === open.first) node.setAttribute('aria-current', 'true');
      else node.removeAttribute('aria-current');
    }
  };

  async function route() {
    const match = /^#event-([0-9]{1,16})$/.exec(location.hash);
    const first = match && Number(match[1]);
    const row = match ? assent.all.find((r) => r.first === first) ?? { first, missing: true } : null;
    const before = open;
    if (!before) listScroll = scrollY;
    open = row ?? null;
    if (!row) {
      byID('story').hidden = true;
      document.body.classList.remove('reading');
      assent.markOpen();
      scrollTo(0, listScroll);
      if (before) document.querySelector(`.event[data-first="${before.first}"]`)?.focus({ preventScroll: true });
      return;
    }
    await assent.showStory(row);
    if (open !== row) return; // somebody was quicker
    document.body.classList.add('reading');
    assent.markOpen();
    byID('story').scrollTop = 0;
    if (matchMedia('(max-width: 59.99rem)').matches) scrollTo(0, 0);
    byID('story-title').focus({ preventScroll: true });
  }

  function head() {
    const { log } = assent;
    if (log.name) {
      byID('title').replaceChildren('What ', assent.foreign('span', '', log.name), ' recorded');
      document.title = 'Assent: what the box recorded';
    }
    const times = assent.all.map((row) => row.unix).filter(Boolean);
    const first = times.reduce((a, b) => Math.min(a, b), Infinity);
    const last = times.reduce((a, b) => Math.max(a, b), 0);
    byID('range').textContent = last === 0 ? '' : `${first === last || words.date(first) === words.date(last) ? words.date(last) : `${words.date(first)} to ${words.date(last)}`} · times of ${words.zone}`;
  }

  // What nobody can answer must not be found by chance.
  function unknowns() {
    const rows = assent.all.filter((row) => row.outcome === 'unknown');
    if (rows.length === 0) return;
    byID('verdict').after(el('p', { class: 'alarm-line' }, assent.icon('unknown'),
      el('span', {}, `${rows.length === 1 ? 'The outcome of one request is' : `The outcomes of ${words.number(rows.length)} requests are`} not known.`),
      el('button', { type: 'button', class: 'plain-button', onclick: () => { assent.only('unknown'); byID('filters').scrollIntoView(); } }, 'Show')));
  }

  if (!assent.log) {
    byID('verdict').replaceChildren(el('h2', {}, 'This page is not complete'), el('p', {}, 'The files in its data directory cannot be read. The copy is damaged, or was not copied whole.'));
  } else {
    head();
    assent.showVerdict(assent.log);
    unknowns();
    assent.setUpList();
    addEventListener('hashchange', route);
    route();
  }
}
