package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// credentials are the files of the API server, and the token and CA of its clients.
type credentials struct {
	folder string
	token  string // The administrator's token.
	pool   *x509.CertPool
}

func (c credentials) path(name string) string { return filepath.Join(c.folder, name) }

// loadOrCreate reads a folder with ca.crt, ca.key, server.crt, server.key, service-account.key and tokens.csv, and
// creates missing files. Of a certificate and its key, both or none must exist.
func loadOrCreate(folder string) (credentials, error) {
	c := credentials{folder: folder, pool: x509.NewCertPool()}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return c, err
	}
	authority, authorityKey, err := c.authority()
	if err != nil {
		return c, err
	}
	c.pool.AddCert(authority)
	if !exists(c.path("server.crt")) {
		template := &x509.Certificate{
			Subject:     pkix.Name{CommonName: "kube-apiserver"},
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
			DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		}
		if _, _, err := c.makeCertificate("server", template, authority, authorityKey); err != nil {
			return c, err
		}
	}
	if !exists(c.path("service-account.key")) {
		if _, err := c.makeKey("service-account"); err != nil {
			return c, err
		}
	}
	if !exists(c.path("tokens.csv")) {
		random := make([]byte, 20)
		if _, err := rand.Read(random); err != nil {
			return c, err
		}
		line := hex.EncodeToString(random) + ",admin,admin,system:masters\n"
		if err := os.WriteFile(c.path("tokens.csv"), []byte(line), 0o600); err != nil {
			return c, err
		}
	}
	tokens, err := os.ReadFile(c.path("tokens.csv"))
	if err != nil {
		return c, err
	}
	// The first line has the administrator's token.
	c.token, _, _ = strings.Cut(string(tokens), ",")
	return c, nil
}

func (c credentials) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if !exists(c.path("ca.crt")) {
		template := &x509.Certificate{
			Subject:               pkix.Name{CommonName: "oarlock-tests"},
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
			IsCA:                  true,
			BasicConstraintsValid: true,
		}
		return c.makeCertificate("ca", template, nil, nil)
	}
	certificate, err := readPEM(c.path("ca.crt"), x509.ParseCertificate)
	if err != nil {
		return nil, nil, err
	}
	key, err := readPEM(c.path("ca.key"), x509.ParsePKCS8PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	ecdsaKey, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("%s: not an ECDSA key", c.path("ca.key"))
	}
	return certificate, ecdsaKey, nil
}

// makeCertificate writes NAME.crt and NAME.key. Without a CA the certificate is self-signed.
func (c credentials) makeCertificate(
	name string, template, authority *x509.Certificate, authorityKey *ecdsa.PrivateKey,
) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := c.makeKey(name)
	if err != nil {
		return nil, nil, err
	}
	if authority == nil {
		authority, authorityKey = template, key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey)
	if err != nil {
		return nil, nil, err
	}
	if err := writePEM(c.path(name+".crt"), "CERTIFICATE", der); err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return certificate, key, err
}

func (c credentials) makeKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	// The key of service accounts must have the older form, EC PRIVATE KEY; the other keys may have it too.
	kind, marshal := "PRIVATE KEY", func() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(key) }
	if name == "service-account" {
		kind, marshal = "EC PRIVATE KEY", func() ([]byte, error) { return x509.MarshalECPrivateKey(key) }
	}
	der, err := marshal()
	if err != nil {
		return nil, err
	}
	return key, writePEM(c.path(name+".key"), kind, der)
}

// writeKubeconfig writes the administrator's kubeconfig, with embedded certificates, so that it can be copied.
func (c credentials) writeKubeconfig(path, url string) error {
	authority, err := os.ReadFile(c.path("ca.crt"))
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: control-plane
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: admin
  user:
    token: %s
contexts:
- name: control-plane
  context:
    cluster: control-plane
    user: admin
    namespace: default
current-context: control-plane
`, url, base64.StdEncoding.EncodeToString(authority), c.token)
	return os.WriteFile(path, []byte(text), 0o600)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func readPEM[T any](path string, parse func([]byte) (T, error)) (T, error) {
	var none T
	text, err := os.ReadFile(path)
	if err != nil {
		return none, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return none, fmt.Errorf("%s: no PEM block in it", path)
	}
	parsed, err := parse(block.Bytes)
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return parsed, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func gitVersion(body io.Reader) string {
	var version struct{ GitVersion string }
	if err := json.NewDecoder(body).Decode(&version); err != nil {
		return ""
	}
	return version.GitVersion
}
