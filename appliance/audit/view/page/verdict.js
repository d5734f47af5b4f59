'use strict';
// The state of the record, in words, and how far they can be believed.
{
  const { el, icon, words } = assent;

  const incomplete = {
    torn: ['The end of this record is torn',
      'The last bytes were cut off or damaged, as happens when the power fails. Nothing that anybody relied on was in them: the box signs before it acts, and everything up to the last signature is whole. If the power did not fail, ask why.'],
    missing: ['A part of this record is missing',
      'A file is not there. What is listed below comes before the gap. Nothing shows whether it was lost or taken away.'],
    withheld: ['Texts were left out of this copy',
      'The order of events is whole, but literal texts are not there and no entry says who removed them. If this was not meant to be a copy without texts, ask why.'],
    nothing: ['Nothing here was ever signed',
      'There is no record yet, or not even its beginning is whole.'],
    other: ['This record does not reach as far as it should',
      'It is whole in itself, but does not hold what was noted elsewhere. It may have been cut back to an earlier state, or belong to another box.'],
  };

  const verdicts = {
    intact: (log) => ['good', 'good', 'Nothing in this record was changed', log.redacted
      ? 'Every entry is there, in order, and signed. Literal texts were left out of this copy on purpose.'
      : 'Every entry is there, as the box wrote it, in order, and signed.'],
    altered: (log) => log.problem?.about === 'kept' ? ['alarm', 'bad', 'This record contradicts what was kept elsewhere',
      'It is whole in itself as far as it was read, but it is not the record that was noted. It was replaced or changed since, or what was noted is of another box.'] : ['alarm', 'bad', 'This record was changed after it was written',
      'Something in it is not as the box wrote it, and a later signature shows that it was whole once. A power cut does not do this. What is listed below comes before the change; what came after it cannot be trusted.'],
    incomplete: (log) => ['warn', 'torn', ...(incomplete[log.cause] ?? incomplete.other)],
  };

  // place is for bytes in a file; what is wrong of the whole has none.
  const place = (p) => p.about === 'record' ? `file ${p.segment}, byte ${words.number(p.offset)}, entry ${words.number(p.seq)}: ` : '';

  const key = (hex) => hex.match(/.{1,4}/g).join(' ');

  function comparisons(log) {
    const facts = [];
    if (log.head) {
      facts.push(el('div', {}, el('dt', {}, 'Code of the log'), el('dd', {}, el('strong', { class: 'code head-code' }, log.head),
        el('p', { class: 'small' }, log.status === 'intact'
          ? `The box’s screen shows this code after “log” while entry ${words.number(log.head_seq)} is its newest. Without that comparison, nobody can rule out that newer entries were cut off.`
          : `Entry ${words.number(log.head_seq)} is the last that is signed and whole, and this is its code.`))));
    }
    if (log.root) {
      facts.push(el('div', {}, el('dt', {}, 'Key of the box'), el('dd', {}, el('span', { class: 'code' }, key(log.root)),
        el('p', { class: 'small' }, 'Compare it with the key noted when the box was set up. Another key means another box, or a forged record.'))));
    }
    const counted = [`${log.stopped ? 'Read up to what is wrong: ' : ''}${words.number(log.records)} entries under ${words.number(log.seals)} signatures.`];
    if (log.pruned) counted.push('Older entries were pruned, as the record says.');
    if (log.removed) counted.push(`${words.number(log.removed)} texts were removed, as entries say.`);
    if (log.withheld) counted.push(`${words.number(log.withheld)} texts were left out of this copy.`);
    if (log.unproven && log.status !== 'altered') counted.push(`${words.number(log.unproven)} entries at the end have no signature, and prove nothing.`);
    return el('details', { class: 'compare', open: log.status !== 'intact' },
      el('summary', {}, 'What to compare'),
      facts.length ? el('dl', { class: 'facts' }, facts) : null,
      log.problem ? el('p', { class: 'small' }, `First thing that is wrong: ${place(log.problem)}`, assent.foreign('span', 'code', log.problem.reason)) : null,
      el('p', { class: 'small' }, counted.join(' ')));
  }

  const made = (log) => log.made_ms ? ` on ${words.exact(log.made_ms)}` : '';

  const whose = {
    box: (log) => `This is the box’s own statement${made(log)}`,
    copy: (log) => `This was found by the computer that made this copy${made(log)}`,
  };

  const statement = (log) => log.statement === 'here'
    ? el('p', { class: 'whose' }, `Checked by this computer${made(log)}. Reload the page to check again.`)
    : el('p', { class: 'whose' }, `${(whose[log.statement] ?? whose.box)(log)}, and this page is not evidence. To check it yourself, run `,
      el('code', {}, 'assent audit verify'), ' or ', el('code', {}, 'assent_verify.py'), ' from Assent’s own source on the directory above this one.');

  assent.showVerdict = (log) => {
    const [tone, sign, title, text] = verdicts[log.status](log);
    const node = assent.byID('verdict');
    node.dataset.tone = tone;
    node.dataset.status = log.status;
    node.replaceChildren(
      el('div', { class: 'finding' }, el('span', { class: 'sign' }, icon(sign)), el('h2', {}, title), el('p', {}, text)),
      statement(log),
      comparisons(log));
  };
}
