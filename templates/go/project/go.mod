module example.com/my-plugin

go 1.25

require oarlock.dev/sdk v0.1.0

// `oarlock plugin new` and `oarlock plugin build` put the SDK here.
replace oarlock.dev/sdk => ./.oarlock/go-sdk
