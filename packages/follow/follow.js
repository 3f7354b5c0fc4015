export function follow({ url, token, onUpdate, onState }) {
  const over = new AbortController();
  const req = {};
  let [last, tries, retry, due, lateAt] = [-1, 0, 2000, 0, Date.now() + 5000];
  let state, stream;

  const call = async (does, ...about) => over.signal.aborted || does(...about);
  const emit = (now) => void (now === state || call(onState, (state = now)).catch(console.error));
  const pause = () => Math.min(60000, retry * 2 ** tries++) * (0.5 + Math.random() / 2);
  const again = (ms) => {
    stream.abort();
    stream = undefined;
    due = Date.now() + ms;
    lateAt = Math.min(lateAt, Date.now() + 5000);
  };
  const stop = () => {
    over.abort();
    stream?.abort();
    clearInterval(timer);
  };
  const end = () => {
    emit('ended');
    stop();
  };

  async function listen(signal) {
    req.authorization ||= `Bearer ${await token()}`;
    const { status, headers, body } = await fetch(url, { headers: req, signal });
    if (status === 204) return end();
    if (status === 401) req.authorization = '';
    const after = headers.get('retry-after') * (1000 + Math.random() * 500);
    if (after > 0) return again(after);
    if (!/event-stream/.test(headers.get('content-type'))) return;

    const reader = body.getReader();
    const decoder = new TextDecoder();
    let [rest, fields] = ['', {}];
    for (let read; !(read = await reader.read()).done;) {
      due = lateAt = Date.now() + 45000;
      tries = 0;
      emit('connected');
      // A chunk may part CR and LF.
      const lines = (rest + decoder.decode(read.value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        const [, field, text] = /^([^:]*):? ?([^]*)/.exec(line);
        fields[field] = (fields[field] ?? '') + text;
        if (field === 'retry') retry = +text || retry;
        if (line) continue;
        const { event, data } = fields;
        if (event === 'end') return end();
        if (event === 'expired') {
          req.authorization = '';
          return again(Math.random() * 1000);
        }
        const kind = { snapshot: event, orderStatusChanged: 'message' }[event];
        const update = kind && JSON.parse(data);
        if (update?.sequence > last) {
          req['last-event-id'] = last = update.sequence;
          call(onUpdate, update, kind).catch(console.error);
        }
        fields = {};
      }
    }
  }

  // Timers stop while a page sleeps.
  const tick = async () => {
    if (Date.now() >= lateAt) emit('late');
    if (Date.now() < due) return;
    if (stream) return again(pause());
    due = Date.now() + 45000;
    const { signal } = (stream = new AbortController());
    await listen(signal).catch(() => {});
    if (!signal.aborted) again(pause());
  };
  const timer = setInterval(tick, 250);
  const wake = () => stream || (due = 0);
  for (const name of ['online', 'visibilitychange']) globalThis.addEventListener?.(name, wake, over);
  void tick();
  return stop;
}
