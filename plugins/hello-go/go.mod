module oarlock.dev/plugins/hello-go

go 1.25

require go.bytecodealliance.org/pkg v0.4.0

// What the bindings stand on, as the version of wit-bindgen that makes them carries it.
replace go.bytecodealliance.org/pkg => ./pkg
