module oarlock.dev/sdk

go 1.25
