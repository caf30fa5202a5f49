module example.com/my-plugin

go 1.25

require oarlock.dev/sdk v0.1.0

// `oarlock plugin build` puts the SDK here.
replace oarlock.dev/sdk => ./.oarlock/go-sdk
