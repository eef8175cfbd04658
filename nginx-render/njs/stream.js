// Picks where a connection goes on: to any line of the file of the port that it came in on, or of the host that TLS is for;
// or, at the port for HTTP, by its first bytes.

import fs from 'fs';

const HOST = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/;

// How an HTTP/2 connection begins (RFC 9113, 3.4).
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

function lines(name) {
    return fs.readFileSync(DIRECTORY + '/' + name, 'utf8').split('\n').filter((line) => line.length > 0);
}

function any(s, name, endpoints) {
    if (endpoints.length === 0) {
        s.error(name + ' has no endpoints');
        return '';
    }
    return endpoints[Math.floor(Math.random() * endpoints.length)];
}

// The group of the endpoints, if this NGINX has loaded it; otherwise one of them.
function endpoint(s) {
    const name = s.variables.protocol.toLowerCase() + '-' + s.variables.server_port;
    let endpoints;
    try {
        endpoints = lines(name);
    } catch (e) {
        s.error('reading the endpoints of ' + name + ': ' + e.message);
        return '';
    }
    if (endpoints.length > 0 && endpoints[0].startsWith('group ')) {
        const group = endpoints.shift().slice(6);
        if (s.variables.endpoint_group === group) {
            return group;
        }
    }
    return any(s, name, endpoints);
}

// The endpoints of the host that the client names, or of the wildcard host above it; null where TLS ends here.
function passed(s) {
    const host = (s.variables.ssl_preread_server_name || '').toLowerCase();
    if (host.length > 253 || !HOST.test(host)) {
        return null;
    }
    const names = [host, '*' + host.slice(host.indexOf('.'))];
    for (let i = 0; i < names.length; i++) {
        let endpoints;
        try {
            endpoints = lines('tls/' + names[i]);
        } catch (e) {
            continue;
        }
        return endpoints[0] === 'here' ? null : endpoints;
    }
    return null;
}

function way(s) {
    return passed(s) === null ? PASSTHROUGH.https : PASSTHROUGH.relay;
}

function tlsEndpoint(s) {
    const endpoints = passed(s);
    return any(s, 'TLS for ' + s.variables.ssl_preread_server_name, endpoints === null ? [] : endpoints);
}

// Waits until the first bytes tell HTTP/2 from HTTP/1.1, which is where connections go unless told otherwise.
function preread(s) {
    s.on('upload', (data, flags) => {
        const length = Math.min(data.length, PREFACE.length);
        const same = data.slice(0, length) === PREFACE.slice(0, length);
        if (same && length === PREFACE.length) {
            s.variables.http_way = HTTP2;
        }
        if (!same || length === PREFACE.length || flags.last) {
            s.done();
        }
    });
}

// Puts a PROXY header before what the client sends that says what the header of the proxy in front of NGINX said.
function header(s) {
    s.on('upstream', (data, flags) => {
        s.off('upstream');
        const v = s.variables;
        const source = v.remote_addr;
        const family = (address) => address.indexOf(':') < 0 ? 'TCP4' : 'TCP6';
        const known = v.proxy_protocol_server_addr || '';
        let target = known || v.server_addr;
        if (family(target) !== family(source)) {
            target = family(source) === 'TCP4' ? '0.0.0.0' : '::';
        }
        const port = known ? v.proxy_protocol_server_port : v.server_port;
        const text = `PROXY ${family(source)} ${source} ${target} ${v.remote_port} ${port}\r\n`;
        s.send(Buffer.concat([Buffer.from(text), data]), flags);
    });
}

export default { endpoint, way, tlsEndpoint, preread, header };
