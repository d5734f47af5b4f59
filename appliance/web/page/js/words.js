// Plain words for the closed vocabulary in which the box says what became of a request. Its codes are for programs, and
// are in its record; nobody reads them here.

const capabilities = {
  'web.search': 'Web search',
  'web.fetch': 'Web page',
  'system.health': 'The box’s health',
  'pihole.summary': 'Ad blocker',
  'pihole.pause': 'Pause the ad blocker',
};

// capability is never shown instead of the name that it stands for, only before it.
export const capability = (name) => capabilities[name] ?? name ?? 'Request';

const statuses = {
  failed: ['It did not work', 'Nothing was changed.'],
  unknown: ['Nobody can say', 'The box cannot tell whether it took effect. It is not tried again by itself.'],
  rejected: ['Not possible', 'The box refused this before asking anybody.'],
  denied: ['Denied', 'Somebody said no. It was not done.'],
  expired: ['Ran out of time', 'It was read at the box, but not decided in time. It was not done.'],
  expired_unseen: ['Nobody looked', 'Nobody read it at the box in time. It was not done.'],
  withdrawn: ['Taken back', 'It was taken back before it was decided. It was not done.'],
};

// What was refused only once it was with the panel may have been on it already.
const stages = {
  confirm: ['Not possible', 'It ended at the box before anybody had decided. It was not done.'],
};

const codes = {
  malformed_call: 'The model wrote a request that cannot be read.',
  ambiguous_call: 'The model wrote a request that can be read in two ways.',
  truncated_call: 'The model stopped in the middle of a request.',
  budget_exhausted: 'The model has used up what it may do for one question.',
  unknown_capability: 'The model asked for something that the box cannot do.',
  invalid_arguments: 'The model’s request was not valid.',
  unknown_argument: 'The model’s request held something that does not belong there.',
  missing_argument: 'Something was missing from the model’s request.',
  argument_too_long: 'The text was too long to be shown on the box.',
  undisplayable_text: 'The text holds characters that the box cannot show as they are.',
  no_live_ask: 'The question that it belongs to is over. Ask again.',
  not_allowed: 'This phone’s role does not allow it.',
  cool_down: 'It has to wait a while: requests before it were refused, not opened, or taken back too often.',
  denied_in_turn: 'This was denied already for this question.',
  clock_unset: 'The box does not know the date yet, which it needs for a secure connection.',
  not_configured: 'This is not set up on the box.',
  decision_pending: 'Another request of this phone still waits at the box.',
  display_unavailable: 'The box’s screen does not answer, so nothing can be approved.',
  receipt_stale: 'Something changed between the press and the sending. Nothing was sent.',
  audit_unavailable: 'The box cannot write its record, so it does nothing. Check its card.',
  grant_refused: 'The part of the box that makes connections refused it. Nothing was sent.',
  courier_unavailable: 'The box cannot reach other machines at the moment.',
  unreachable: 'The other side did not answer. Nothing was sent.',
  remote_error: 'The other side answered that it failed.',
  redirect: 'The other side pointed somewhere else. The box does not follow.',
  bad_response: 'The answer was not as it must be, so it is not shown.',
  timeout: 'It took too long.',
  interrupted: 'It was interrupted.',
  internal_error: 'Something went wrong in the box.',
};

export function outcome(o) {
  // While the box is frozen a banner says so, and what to do; this is what remains of it in the conversation.
  if (o.code === 'frozen' && o.status !== 'unknown') return { title: 'Not done', text: 'The box was frozen.', plain: '' };
  const [title, plain] = (o.status === 'rejected' && stages[o.stage]) || statuses[o.status] || ['It ended', 'The box does not say more.'];
  const why = codes[o.code] ?? plain; // not o.message, which is written for the model
  const wait = o.retry_in ? ` Ask again in ${seconds(o.retry_in)}.` : '';
  return { title, text: why + wait, plain: why === plain ? '' : plain };
}

export const seconds = (n) => (n < 90 ? `${n} seconds` : `${Math.round(n / 60)} minutes`);

export function sentence(text) {
  const first = (text.charAt(0).toUpperCase() + text.slice(1)).replaceAll("'", '’');
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

const errors = {
  bad_frame: 'This page and the box do not understand each other. Reload the page.',
  unknown_type: 'This page and the box do not understand each other. Reload the page.',
};

// told is what a person reads of an error: the box's words for people, or otherwise for what the browser throws.
export const told = (error, otherwise) =>
  sentence(typeof error.code === 'string' ? errors[error.code] ?? error.message : otherwise);

const ends = {
  cancelled: 'Stopped.',
  length: 'The answer was cut off: it reached the longest that the box allows.',
  failed: 'The answer broke off.',
};

export const turnEnd = (end) => (end.reason === 'complete' ? '' : end.message || ends[end.reason] || 'The turn ended.');

export const when = (text) => {
  const date = text ? new Date(text) : null;
  if (!date || Number.isNaN(date.valueOf())) return '';
  return date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
};

export const day = (time) => new Date(time).toLocaleDateString(undefined, { dateStyle: 'long' });

// doing turns the title of a request, "Search Wikipedia for", into what the box was at: "searching Wikipedia for".
function doing(u) {
  const [verb, ...rest] = (u.title ?? '').split(' ');
  const forms = { Search: 'searching', Fetch: 'fetching', Read: 'reading', Open: 'opening', Look: 'looking', Ask: 'asking', Pause: 'pausing', Turn: 'turning', Set: 'setting', Write: 'writing', Send: 'sending' };
  if (forms[verb]) return [forms[verb], ...rest].join(' ');
  return `busy with “${u.title || capability(u.capability)}”`;
}

// went says how far a call got of which nobody knows the outcome.
export const went = (u) => (u.sent
  ? 'It was sent. What became of it the box does not know, and cannot find out. It was not sent again.'
  : 'It may or may not have been sent, and the box cannot find out. It was not sent again.');

// cutOff says how it came that nobody knows the outcome of a call.
export function cutOff(u) {
  const end = u.text ? ':' : '.';
  if (u.cut) return `The power went, or the box was restarted, while it was ${doing(u)}${end}`;
  const why = {
    timeout: 'No answer came in time while the box was',
    interrupted: 'The box was interrupted while it was',
    audit_unavailable: 'The box could not write down what became of it while it was',
  };
  return `${why[u.code] ?? 'Something went wrong while the box was'} ${doing(u)}${end}`;
}
