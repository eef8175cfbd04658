// Picks an endpoint for a connection: any line of the file of the port that it came in on, or of the host that TLS is for.

import fs from 'fs';

const HOST = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/;

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

function endpoint(s) {
    const name = s.variables.protocol.toLowerCase() + '-' + s.variables.server_port;
    let endpoints;
    try {
        endpoints = lines(name);
    } catch (e) {
        s.error('reading the endpoints of ' + name + ': ' + e.message);
        return '';
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

export default { endpoint, way, tlsEndpoint };
