'use strict';
// What things are called, for people.
{
  const kinds = {
    call: ['Request', 'Requests'],
    turn: ['Question', 'Questions'],
    administration: ['Administration', 'Administration'],
    start: ['Start', 'Starts'],
    freeze: ['Emergency stop', 'Emergency stops'],
    fault: ['Fault', 'Faults'],
    clock: ['Clock', 'Clock changes'],
    suppressed: ['Left out', 'Left out, too many'],
    claim: ['Report', 'Reports by other parts'],
    feed: ['Feed', 'Feeds'],
    tool: ['Tool', 'Outside tools'],
  };

  // A colour, an icon and a word: none of them is needed to tell the others apart.
  const outcomes = {
    done: ['good', 'good', 'Done'],
    failed: ['warn', 'bad', 'Did not work'],
    unknown: ['alarm', 'unknown', 'Outcome unknown'],
    rejected: ['stop', 'stop', 'Refused by the box'],
    denied: ['stop', 'bad', 'Denied at the box'],
    expired: ['quiet', 'clock', 'Time ran out'],
    expired_unseen: ['quiet', 'clock', 'Nobody came'],
    withdrawn: ['quiet', 'back', 'Taken back'],
    open: ['warn', 'open', 'Not finished'],
    noted: ['quiet', null, 'Noted'],
  };

  const steps = {
    asked: 'The question',
    proposed: 'What the model wrote',
    understood: 'What the box made of it',
    judged: 'What the rules said',
    shown: 'What the box’s screen showed',
    decided: 'What somebody at the box did',
    withdrawn: 'Taken back',
    refused: 'Refused',
    promised: 'Written down before it began',
    sent: 'What was sent',
    answered: 'What came of it',
    observed: 'A later look',
    noted: 'What happened',
  };

  const words = assent.words = {
    kind: (kind) => (kinds[kind] ?? [kind, kind])[0],
    kinds: (kind) => (kinds[kind] ?? [kind, kind])[1],
    kindOrder: Object.keys(kinds),
    tone: (outcome) => (outcomes[outcome] ?? ['quiet'])[0],
    sign: (outcome) => (outcomes[outcome] ?? ['quiet', 'open'])[1],
    outcome: (outcome) => (outcomes[outcome] ?? [null, null, outcome])[2],
    outcomeOrder: Object.keys(outcomes),
    step: (name) => steps[name] ?? name,
    capability: (name) => name || 'none that exists',
  };

  // A date that there is not, which a damaged log may claim, must not take the rest of the list with it.
  const format = (options) => {
    const dates = new Intl.DateTimeFormat('en-GB', options); // the page is in English
    return { dates, format: (ms) => Math.abs(ms) <= 8.64e15 ? dates.format(ms) : 'no date' };
  };
  const day = format({ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
  const date = format({ day: 'numeric', month: 'short', year: 'numeric' });
  const clock = format({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  const exact = format({ day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
  words.zone = day.dates.resolvedOptions().timeZone;
  words.date = (ms) => date.format(ms);
  words.day = (row) => row.unix ? day.format(row.unix) : 'At a time that is not known';
  words.exact = (ms) => exact.format(ms);
  words.number = (n) => n.toLocaleString('en-GB');

  words.span = (ns) => {
    const s = ns / 1e9;
    if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
    const minutes = Math.round(s / 60);
    if (minutes < 60) return `${minutes} min`;
    const hours = Math.floor(minutes / 60);
    return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
  };

  // time is short, for the list: the day is known from its heading.
  words.time = (row) => {
    if (!row.unix) return `+${words.span(row.since)}`;
    return `${row.clock === 'estimated' ? '≈ ' : ''}${clock.format(row.unix)}`;
  };

  words.phone = (n) => n ? `phone ${n}` : 'no phone';
}
