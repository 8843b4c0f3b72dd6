// Verifies a release with sigstore's library for signatures, which cosign uses, and checks the other
// fields that cosign reads. Pushes the release to a registry in this process, and reads every
// artefact, signature and attestation from there. NAME is the registry of the release.
//
//	usage: release-tools RELEASE PUBLIC_KEY NAME
//
// Prints one line of JSON with the registry's address and what it found, and serves the registry
// until its stdin is closed.
package main

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// artefact is an image or a chart whose signature is valid.
type artefact struct {
	Repository string   `json:"repository"`
	Tag        string   `json:"tag"`
	Digest     string   `json:"digest"`
	Predicates []string `json:"predicates"`
	// Machine is the architecture of an image's Node.js.
	Machine string `json:"machine,omitempty"`
}

type report struct {
	Registry  string     `json:"registry,omitempty"`
	Artefacts []artefact `json:"artefacts"`
	Errors    []string   `json:"errors"`
}

func (r *report) fail(format string, args ...any) {
	r.Errors = append(r.Errors, fmt.Sprintf(format, args...))
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: release-tools RELEASE PUBLIC_KEY NAME")
	}
	found := &report{Artefacts: []artefact{}, Errors: []string{}}
	if err := check(os.Args[1], os.Args[2], os.Args[3], found); err != nil {
		found.fail("%v", err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
	if len(found.Errors) > 0 {
		os.Exit(1)
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		log.Fatal(err)
	}
}

func check(folder, keyPath, registry string, found *report) error {
	pem, err := os.ReadFile(keyPath)
	if err != nil {
		return err
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(pem)
	if err != nil {
		return err
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return err
	}
	if err := checkFiles(filepath.Join(folder, "files"), verifier, found); err != nil {
		return err
	}
	layouts, err := checkBlobs(filepath.Join(folder, "oci"))
	if err != nil {
		return err
	}
	address, err := serve()
	if err != nil {
		return err
	}
	found.Registry = address
	for _, path := range layouts {
		relative, err := filepath.Rel(filepath.Join(folder, "oci"), path)
		if err != nil {
			return err
		}
		repository, err := name.NewRepository(address+"/"+relative, name.Insecure)
		if err != nil {
			return err
		}
		tags, err := push(path, repository)
		if err != nil {
			return err
		}
		expect := expected{verifier: verifier, reference: registry + "/" + relative}
		for _, tag := range tags {
			if err := checkArtefact(repository, tag, expect, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFiles verifies SHA256SUMS, its signature, and the files that it lists.
func checkFiles(folder string, verifier signature.Verifier, found *report) error {
	sums, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
	if err != nil {
		return err
	}
	encoded, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS.sig"))
	if err != nil {
		return err
	}
	signed, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return err
	}
	if err := verifier.VerifySignature(bytes.NewReader(signed), bytes.NewReader(sums)); err != nil {
		found.fail("SHA256SUMS: %v", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(sums))
	for lines.Scan() {
		sum, path, _ := strings.Cut(lines.Text(), "  ")
		contents, err := os.ReadFile(filepath.Join(folder, path))
		if err != nil {
			return err
		}
		if actual := sha256.Sum256(contents); hex.EncodeToString(actual[:]) != sum {
			return fmt.Errorf("%s does not match SHA256SUMS", path)
		}
	}
	return lines.Err()
}

// checkBlobs verifies the digests of all blobs, and returns the folders of the layouts.
func checkBlobs(folder string) ([]string, error) {
	layouts := []string{}
	wrong := errors.New("a blob does not match its digest")
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if entry.Name() == "index.json" {
			layouts = append(layouts, filepath.Dir(path))
		}
		if filepath.Base(filepath.Dir(path)) != "sha256" {
			return nil
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		hash := sha256.New()
		if _, err := io.Copy(hash, file); err != nil {
			return err
		}
		if hex.EncodeToString(hash.Sum(nil)) != entry.Name() {
			return fmt.Errorf("%w: %s", wrong, entry.Name())
		}
		return nil
	})
	return layouts, err
}

// checkArtefact verifies the artefact `tag`, and each architecture of an image.
func checkArtefact(repository name.Repository, tag string, expect expected, found *report) error {
	descriptor, err := remote.Get(repository.Tag(tag))
	if err != nil {
		return err
	}
	checkSignatures(repository, tag, descriptor.Digest, expect, found)
	if len(found.Errors) > 0 || !descriptor.MediaType.IsIndex() {
		return nil
	}
	index, err := descriptor.ImageIndex()
	if err != nil {
		return err
	}
	if err := validate.Index(index); err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, one := range manifest.Manifests {
		last := checkSignatures(repository, tag, one.Digest, expect, found)
		image, err := index.Image(one.Digest)
		if err != nil {
			return err
		}
		machine, err := machineOf(image)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Platform.Architecture, err)
		}
		last.Machine = fmt.Sprintf("%s %s", one.Platform.Architecture, machine)
	}
	return nil
}
