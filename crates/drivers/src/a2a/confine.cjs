'use strict';
// Loaded before the server itself: it listens on loopback only, answers only those who have the key, and says which
// port the system gave it. Nothing of the server is changed.
const crypto = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');

const { GEMBRIDGE_A2A_KEY: key, GEMBRIDGE_A2A_PORT_FILE: portFile } = process.env;
// Commands that the agent runs get neither the key nor this script.
delete process.env.GEMBRIDGE_A2A_KEY;
delete process.env.GEMBRIDGE_A2A_PORT_FILE;
delete process.env.NODE_OPTIONS;

const digest = (text) => crypto.createHash('sha256').update(text).digest();
const expected = digest(`Bearer ${key}`);
const isAllowed = (request) =>
  crypto.timingSafeEqual(digest(String(request.headers.authorization)), expected);

const isPort = (value) => typeof value === 'number' || (typeof value === 'string' && /^\d+$/.test(value));
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...given) {
  const [first] = given;
  const callback = given.filter((value) => typeof value === 'function').slice(-1);
  if (first !== null && typeof first === 'object' && isPort(first.port)) {
    return listen.call(this, { ...first, host: '127.0.0.1' }, ...callback);
  }
  // Without a port it is any port; what is neither is a path or a descriptor.
  if (first === undefined || typeof first === 'function' || isPort(first)) {
    const port = isPort(first) ? Number(first) : 0;
    return listen.call(this, { port, host: '127.0.0.1' }, ...callback);
  }
  return listen.apply(this, given);
};

let isTold = false;
const emit = http.Server.prototype.emit;
http.Server.prototype.emit = function (event, ...values) {
  const [request, second] = values;
  if (event === 'listening' && !isTold) {
    isTold = true;
    fs.writeFileSync(`${portFile}.new`, String(this.address().port), { mode: 0o600 });
    fs.renameSync(`${portFile}.new`, portFile);
  }
  if ((event === 'request' || event === 'checkContinue' || event === 'checkExpectation') && !isAllowed(request)) {
    second.writeHead(401, { connection: 'close' }).end();
    return true;
  }
  if ((event === 'upgrade' || event === 'connect') && !isAllowed(request)) {
    second.destroy();
    return true;
  }
  return emit.call(this, event, ...values);
};
