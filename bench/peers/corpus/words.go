package corpus

// The words that names are made of. There are more than enough combinations for every template to be of its
// own.
var (
	products = []string{
		"orders", "billing", "checkout", "catalog", "search", "identity", "ledger", "shipping", "pricing", "inventory",
		"notifications", "reviews", "recommendations", "media", "payments", "fraud", "reports", "sessions", "tenants", "webhooks",
		"geocoder", "scheduler-ui", "exports", "imports", "audit", "quota", "chat", "presence", "thumbnails", "vouchers",
	}
	roles      = []string{"api", "worker", "gateway", "consumer", "frontend", "cron-runner", "projector", "cache", "indexer", "proxy"}
	stages     = []string{"prod", "staging", "canary"}
	teams      = []string{"atlas", "borealis", "cygnus", "draco", "eridanus", "fornax", "gemini", "hydra"}
	registries = []string{"registry.example.com", "eu.registry.example.net/mirror", "ghcr.example.io", "123456789012.dkr.ecr.eu-central-1.example.com"}
	sidecars   = []string{"istio-proxy", "fluent-bit", "cloud-sql-proxy", "envoy", "vault-agent", "otel-collector"}
	regions    = []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"}
	variables  = []string{
		"LOG_LEVEL", "LOG_FORMAT", "HTTP_PORT", "METRICS_PORT", "DATABASE_URL", "DATABASE_POOL_SIZE", "REDIS_ADDR", "KAFKA_BROKERS",
		"KAFKA_GROUP_ID", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "FEATURE_FLAGS_URL", "S3_BUCKET", "AWS_REGION",
		"REQUEST_TIMEOUT", "SHUTDOWN_GRACE", "GOMEMLIMIT", "JAVA_TOOL_OPTIONS", "SENTRY_ENVIRONMENT", "CACHE_TTL_SECONDS",
		"MAX_IN_FLIGHT", "RETRY_BUDGET", "TLS_CERT_FILE", "OIDC_ISSUER", "TENANT_MODE", "RATE_LIMIT_RPS",
	}
	arguments = []string{
		"--config=/etc/service/config.yaml", "--log-format=json", "--listen=:8080", "--metrics-listen=:9090", "--workers=8",
		"--enable-profiling=false", "--leader-elect=true", "--shutdown-timeout=30s", "--max-batch=500", "--feature-gates=FastPath=true",
	}
)
