module oarlock.dev/plugins/mirror-go

go 1.25

require oarlock.dev/sdk v0.1.0

replace oarlock.dev/sdk => ../../guest-sdk/go
