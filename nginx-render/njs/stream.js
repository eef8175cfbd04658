// Picks an endpoint for a connection: any line of the file of the port that it came in on.

import fs from 'fs';

function endpoint(s) {
    const name = s.variables.protocol.toLowerCase() + '-' + s.variables.server_port;
    let text;
    try {
        text = fs.readFileSync(DIRECTORY + '/' + name, 'utf8');
    } catch (e) {
        s.error('reading the endpoints of ' + name + ': ' + e.message);
        return '';
    }
    const endpoints = text.split('\n').filter((line) => line.length > 0);
    if (endpoints.length === 0) {
        s.error(name + ' has no endpoints');
        return '';
    }
    return endpoints[Math.floor(Math.random() * endpoints.length)];
}

export default { endpoint };
