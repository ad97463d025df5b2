// A fake of the Gemini API on loopback whose model asks retold. usage: node fake_gemini.js PORT LOGDIR
// It takes the place of the shared one, so that the shared `run` and `drive` start it. A prompt with RECALL in it, or one
// that our /recall has made, is answered with a call of every tool that is called search_history; what comes back is
// answered with the keys of the sessions in it. Every request is written to LOGDIR.
const fs = require('fs'), http = require('http'), path = require('path');
const [port, folder] = [+process.argv[2], process.argv[3]];
fs.mkdirSync(folder, { recursive: true });
let requests = 0;

const declared = body => (body.tools || []).flatMap(tool => (tool.functionDeclarations || []).map(one => one.name));
const texts = turn => (turn.parts || []).map(part => part.text || '').join('\n');
const results = body => ((body.contents || []).slice(-1)[0]?.parts || []).filter(part => part.functionResponse);

function asked(body) {
  const said = (body.contents || []).filter(turn => turn.role === 'user').map(texts).filter(Boolean);
  const found = /(?:RECALL|What is asked:) *(.+)/.exec(said[said.length - 1] || '');
  return found && found[1].trim();
}

function parts(body) {
  const answers = results(body);
  if (answers.length) {
    const keys = JSON.stringify(answers).match(/(?:gemini|claude|codex):[\w-]+/g) || ['nothing'];
    return [{ text: `Told in ${[...new Set(keys)].join(', ')}.` }];
  }
  const query = asked(body);
  const calls = query ? declared(body).filter(name => name.endsWith('search_history')) : [];
  if (calls.length) return calls.map(name => ({ functionCall: { name, args: { query } } }));
  return [{ text: query ? 'There is no tool to ask.' : 'Fake answer.' }];
}

function response(url, body) {
  const usageMetadata = { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 };
  if (/countTokens/.test(url)) return { totalTokens: 100 };
  const isStream = /streamGenerateContent/.test(url);
  const content = { role: 'model', parts: isStream ? parts(body) : [{ text: JSON.stringify({ reasoning: 'none', next_speaker: 'user', model_choice: 'flash' }) }] };
  return { candidates: [{ content, index: 0, finishReason: 'STOP' }], modelVersion: 'fake', usageMetadata };
}

http.createServer((request, reply) => {
  let heard = '';
  request.on('data', data => { heard += data; });
  request.on('end', () => {
    requests += 1;
    const body = heard ? JSON.parse(heard) : {};
    fs.writeFileSync(path.join(folder, `${String(requests).padStart(4, '0')}.json`), JSON.stringify({ url: request.url, body }));
    const told = JSON.stringify(response(request.url, body));
    const isStream = /streamGenerateContent/.test(request.url);
    reply.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
    reply.end(isStream ? `data: ${told}\r\n\r\n` : told);
  });
}).listen(port, '127.0.0.1');
