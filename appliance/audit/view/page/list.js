'use strict';
// The list: what there is, filtered, newest first.
{
  const { el, byID, icon, words } = assent;
  const FIRST = 60; // events on the page before somebody asks for more
  const STEP = 200;

  const fields = ['text', 'what', 'outcome', 'capability', 'phone', 'from', 'to'];
  let found = [];
  let shown = 0;

  const badge = (outcome) => el('span', { class: `badge ${words.tone(outcome)}` },
    words.sign(outcome) ? icon(words.sign(outcome)) : null, words.outcome(outcome));
  assent.badge = badge;

  const link = (row) => el('li', {},
    el('a', { href: `#event-${row.first}`, class: `event ${words.tone(row.outcome)}`, 'data-first': row.first },
      el('span', { class: 'time' }, words.time(row)),
      el('span', { class: 'headline', dir: 'auto' }, assent.marked(row.headline)),
      el('span', { class: 'tags' },
        row.outcome === 'noted' ? el('span', { class: 'small' }, words.kind(row.kind)) : badge(row.outcome),
        row.phone ? el('span', { class: 'small' }, words.phone(row.phone)) : null,
        row.sealed ? null : el('span', { class: 'small' }, 'not signed'))));

  // grow puts more of what was found on the page, each day under its own heading.
  function grow(most) {
    const days = byID('days');
    let list = days.lastElementChild?.querySelector('ol');
    let day = list ? words.day(found[shown - 1]) : null;
    for (const row of found.slice(shown, most)) {
      if (words.day(row) !== day) {
        day = words.day(row);
        list = el('ol', { class: 'day' });
        days.append(el('section', { 'aria-label': day }, el('h3', {}, day), list));
      }
      list.append(link(row));
    }
    shown = Math.min(most, found.length);
    byID('more').hidden = shown === found.length;
    assent.markOpen();
  }

  // searchable is made when somebody first searches, and kept: a year has tens of thousands of rows.
  const searchable = (row) => row.searchable ??= `${row.headline} ${row.destination} ${row.capability} ${row.id}`.toLowerCase();

  const dayStart = (value) => value ? new Date(`${value}T00:00:00`).getTime() : null;

  function wanted() {
    const value = Object.fromEntries(fields.map((id) => [id, byID(id).value]));
    const parts = value.text.toLowerCase().split(/\s+/).filter(Boolean);
    const from = dayStart(value.from);
    const to = dayStart(value.to);
    const end = to === null ? null : to + 24 * 3600 * 1000;
    return (row) =>
      (!value.what || row.kind === value.what) &&
      (!value.outcome || row.outcome === value.outcome) &&
      (!value.capability || row.capability === value.capability.slice(1)) &&
      (!value.phone || row.phone === Number(value.phone)) &&
      (from === null || row.unix >= from) &&
      (end === null || (row.unix !== 0 && row.unix < end)) &&
      parts.every((part) => searchable(row).includes(part));
  }

  function filter() {
    found = assent.newestFirst.filter(wanted());
    const set = fields.filter((id) => byID(id).value);
    const all = assent.all.length;
    byID('count').textContent = set.length
      ? `${words.number(found.length)} of ${words.number(all)} events`
      : `${words.number(all)} ${all === 1 ? 'event' : 'events'}`;
    byID('clear').hidden = set.length === 0;
    const inChoices = set.filter((id) => id !== 'text').length;
    byID('more-filters').textContent = inChoices ? `Filters (${inChoices})` : 'Filters';
    byID('days').replaceChildren();
    byID('nothing').hidden = found.length > 0;
    byID('nothing').textContent = all === 0 ? 'Nothing is recorded here yet.' : 'No event fits. Choose less, or show everything.';
    shown = 0;
    grow(FIRST);
  }

  // choices fills a select with what there is, and how often.
  function choices(id, any, key, label, order) {
    const counts = new Map();
    for (const row of assent.all) {
      const value = key(row);
      if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    const values = [...counts.keys()].sort(order);
    byID(id).replaceChildren(
      el('option', { value: '' }, any),
      ...values.map((value) => el('option', { value }, `${label(value)} (${words.number(counts.get(value))})`)));
    byID(id).parentElement.hidden = values.length === 0;
  }

  const by = (list) => (a, b) => list.indexOf(a) - list.indexOf(b);
  const numeric = (a, b) => a - b;

  assent.clearFilters = () => {
    for (const id of fields) byID(id).value = '';
    filter();
  };

  assent.only = (outcome) => {
    assent.clearFilters();
    byID('outcome').value = outcome;
    openChoices(true);
    filter();
  };

  function openChoices(on) {
    byID('choices').hidden = !on;
    byID('more-filters').setAttribute('aria-expanded', String(on));
  }

  assent.setUpList = () => {
    assent.newestFirst = assent.all.toSorted((a, b) => b.first - a.first);
    choices('what', 'Everything', (row) => row.kind, words.kinds, by(words.kindOrder));
    choices('outcome', 'In any way', (row) => row.outcome, words.outcome, by(words.outcomeOrder));
    // A leading sign keeps an unknown ability apart from no choice.
    choices('capability', 'Any', (row) => row.kind === 'call' ? `=${row.capability}` : null, (value) => words.capability(value.slice(1)));
    choices('phone', 'Any', (row) => row.phone || null, words.phone, numeric);
    byID('filters').addEventListener('submit', (event) => event.preventDefault());
    for (const id of fields) byID(id).addEventListener('input', filter);
    byID('more-filters').addEventListener('click', () => openChoices(byID('choices').hidden));
    byID('clear').addEventListener('click', () => { assent.clearFilters(); byID('text').focus(); });
    byID('more').addEventListener('click', () => grow(shown + STEP));
    addEventListener('beforeprint', () => grow(Math.min(found.length, 2000)));
    filter();
  };
}
