local check = require("check")
local validity = require("ingress.ocsp.validity")

-- Made with `openssl ocsp -ndays 1 -respout` on 2026-11-30 at 11:30:39.
local response = ngx.decode_base64(
  "MIICrwoBAKCCAqgwggKkBgkrBgEFBQcwAQEEggKVMIICkTCBs6EUMBIxEDAOBgNVBAMMB1Rlc3QgQ0EYDzIwMjYxMTMwMTEzMDM5WjBl"
    .. "MGMwOzAJBgUrDgMCGgUABBS/cFLIucD3YMiRI+CZgV6ywDlCJgQUO5eA0H0wJuLMblEc4yBAcUhDpq8CAhABgAAYDzIwMjYxMTMwMTEz"
    .. "MDM5WqARGA8yMDI2MTIwMTExMzAzOVqhIzAhMB8GCSsGAQUFBzABAgQSBBCSOHJL94gkJxsB3kkrzQOmMAoGCCqGSM49BAMCA0gAMEUC"
    .. "IQCuye44ZMKr8rywAqEwhfMMTSd09ByJiqUI9WqGcUQ/HQIgcOVSr0ZjOjJPG4MmwE5MiCVDEU4HC2tiTjcSKlke/a+gggGBMIIBfTCC"
    .. "AXkwggEfoAMCAQICFCM0adcawyJ2mtBE1FLf2UsLR5SqMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMMB1Rlc3QgQ0EwHhcNMjYxMTMwMTEz"
    .. "MDM5WhcNMjYxMjMwMTEzMDM5WjASMRAwDgYDVQQDDAdUZXN0IENBMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQCjEtHwfmP9PJtym"
    .. "I+ssPD2Q2v7Vz7iXzV4qocNmwMQeSc0Xze7VUIPZVWS8tmiqTyA+xP1N7D06mNHpUSlI36NTMFEwHQYDVR0OBBYEFDuXgNB9MCbizG5R"
    .. "HOMgQHFIQ6avMB8GA1UdIwQYMBaAFDuXgNB9MCbizG5RHOMgQHFIQ6avMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIg"
    .. "AuW4U+1goYi7QCYJpjE93MJElRMPP7wHFkcXfrR/o9ACIQCEFf6wGWit9i+s0IFbo50NrCTWcBWQn89owtcc0TvgEw=="
)

return {
  ["the end of a response"] = function()
    check.equal(os.date("!%Y-%m-%dT%H:%M:%S", validity.ends(response)), "2026-12-01T11:30:39")
    check.equal(validity.ends(response), 1796124639)
  end,
  ["texts that are no response have no end"] = function()
    for length = 0, #response - 1 do
      check.equal(validity.ends(response:sub(1, length)), nil)
    end
    check.equal(validity.ends(("\255"):rep(64)), nil)
    check.equal(validity.ends(("\48\128"):rep(64)), nil)
  end,
}
