local check = require("check")
local config = require("ingress.config")

return {
  ["defaults"] = function()
    local values = config.parse("{}")
    check.equal(values.listen_ports, { https = "443", status_port = "10246", ssl_proxy = "442" })
    check.equal(values.enable_metrics, false)
    check.equal(values.monitor_batch_max_size, 10000)
    check.equal(values.resolv_conf, "/etc/resolv.conf")
  end,
  ["what the file says, and members it may have beside"] = function()
    local values = config.parse('{"checksum":"a1","listen_ports":{"status_port":"1"},"enable_ocsp":true,"later":[]}')
    check.equal(values.checksum, "a1")
    check.equal(values.listen_ports.status_port, "1")
    check.equal(values.listen_ports.https, "443")
    check.equal(values.enable_ocsp, true)
    check.equal(values.later, nil)
    check.equal(config.parse('{"checksum":null}').checksum, "")
  end,
  ["wrong files"] = function()
    for text, part in pairs({
      [""] = "not JSON",
      ["{"] = "not JSON",
      ["1"] = "not an object",
      ['{"enable_ocsp":"yes"}'] = "enable_ocsp: expected a boolean, found a string",
      ['{"listen_ports":{"status_port":10246}}'] = "listen_ports.status_port: expected a string, found a number",
      ['{"monitor_batch_max_size":0}'] = "monitor_batch_max_size: must be at least 1",
      ['{"enable_metrics":true}'] = "metrics_socket: needed",
    }) do
      local values, err = config.parse(text)
      check.failure(values, err, part)
    end
  end,
}
