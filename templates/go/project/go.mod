module example.com/my-plugin

go 1.25

require go.bytecodealliance.org/pkg v0.4.0

// The build generates bindings, and puts the packages that they import here.
replace go.bytecodealliance.org/pkg => ./pkg
