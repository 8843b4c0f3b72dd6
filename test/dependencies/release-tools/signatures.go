package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

const (
	signatureType = "application/vnd.dev.cosign.simplesigning.v1+json"
	envelopeType  = "application/vnd.dsse.envelope.v1+json"
	payloadType   = "application/vnd.in-toto+json"
)

// expected is what a signature must contain.
type expected struct {
	verifier signature.Verifier
	// reference is the name of the repository in the registry of the release.
	reference string
}

// checkSignatures verifies what cosign attaches to a digest: its signature and its attestations.
func checkSignatures(repository name.Repository, tag string, digest v1.Hash, expect expected, found *report) *artefact {
	one := artefact{Repository: repository.RepositoryStr(), Tag: tag, Digest: digest.String(), Predicates: []string{}}
	err := eachLayer(repository, digest, "sig", func(contents []byte, layer v1.Descriptor) error {
		if layer.MediaType != signatureType {
			return fmt.Errorf("has the type %s", layer.MediaType)
		}
		signed, err := base64.StdEncoding.DecodeString(layer.Annotations["dev.cosignproject.cosign/signature"])
		if err != nil {
			return err
		}
		if err := expect.verifier.VerifySignature(bytes.NewReader(signed), bytes.NewReader(contents)); err != nil {
			return err
		}
		claim := payload.SimpleContainerImage{}
		if err := json.Unmarshal(contents, &claim); err != nil {
			return err
		}
		critical := payload.Critical{
			Identity: payload.Identity{DockerReference: expect.reference},
			Image:    payload.Image{DockerManifestDigest: digest.String()},
			Type:     payload.CosignSignatureType,
		}
		if claim.Critical != critical {
			return fmt.Errorf("signs %+v", claim.Critical)
		}
		return nil
	})
	if err != nil {
		found.fail("signature of %s@%s: %v", one.Repository, digest, err)
	}
	err = eachLayer(repository, digest, "att", func(contents []byte, layer v1.Descriptor) error {
		if layer.MediaType != envelopeType {
			return fmt.Errorf("has the type %s", layer.MediaType)
		}
		if err := dsse.WrapVerifier(expect.verifier).VerifySignature(bytes.NewReader(contents), nil); err != nil {
			return err
		}
		predicate, err := predicateOf(contents, digest)
		one.Predicates = append(one.Predicates, predicate)
		if err == nil && layer.Annotations["predicateType"] != predicate {
			return fmt.Errorf("is annotated with the predicate %q", layer.Annotations["predicateType"])
		}
		return err
	})
	if err != nil {
		found.fail("attestation of %s@%s: %v", one.Repository, digest, err)
	}
	found.Artefacts = append(found.Artefacts, one)
	return &found.Artefacts[len(found.Artefacts)-1]
}

func eachLayer(repository name.Repository, digest v1.Hash, kind string, use func([]byte, v1.Descriptor) error) error {
	tag := fmt.Sprintf("%s-%s.%s", digest.Algorithm, digest.Hex, kind)
	image, err := remote.Image(repository.Tag(tag))
	if err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	if len(manifest.Layers) == 0 {
		return errors.New("no layers")
	}
	for _, descriptor := range manifest.Layers {
		layer, err := image.LayerByDigest(descriptor.Digest)
		if err != nil {
			return err
		}
		reader, err := layer.Compressed()
		if err != nil {
			return err
		}
		contents, err := io.ReadAll(reader)
		if err != nil {
			return err
		}
		if err := use(contents, descriptor); err != nil {
			return err
		}
	}
	return nil
}

// predicateOf returns the predicate type of a statement, which must be about the digest.
func predicateOf(envelope []byte, digest v1.Hash) (string, error) {
	signed := struct {
		PayloadType string `json:"payloadType"`
		Payload     []byte `json:"payload"`
	}{}
	if err := json.Unmarshal(envelope, &signed); err != nil {
		return "", err
	}
	if signed.PayloadType != payloadType {
		return "", fmt.Errorf("has a payload of the type %s", signed.PayloadType)
	}
	statement := struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}{}
	if err := json.Unmarshal(signed.Payload, &statement); err != nil {
		return "", err
	}
	for _, subject := range statement.Subject {
		if subject.Digest[digest.Algorithm] == digest.Hex && statement.Type == "https://in-toto.io/Statement/v1" {
			return statement.PredicateType, nil
		}
	}
	return "", fmt.Errorf("%s is about other subjects", statement.PredicateType)
}
