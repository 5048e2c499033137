// Decodes the objects of rendered charts strictly into the published types of Kubernetes: an unknown or mistyped field is an error.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	strict "sigs.k8s.io/yaml"
)

var types = map[string]func() any{
	"v1 Service":                              func() any { return &corev1.Service{} },
	"v1 ServiceAccount":                       func() any { return &corev1.ServiceAccount{} },
	"apps/v1 StatefulSet":                     func() any { return &appsv1.StatefulSet{} },
	"apps/v1 Deployment":                      func() any { return &appsv1.Deployment{} },
	"batch/v1 Job":                            func() any { return &batchv1.Job{} },
	"networking.k8s.io/v1 Ingress":            func() any { return &networkingv1.Ingress{} },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return &networkingv1.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":           func() any { return &policyv1.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1 ServiceMonitor": nil,
}

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	count := 0
	for _, part := range bytes.Split(input, []byte("\n---")) {
		var kind struct{ APIVersion, Kind string }
		if err := strict.Unmarshal(part, &kind); err != nil {
			fail(err, part)
		}
		if kind.Kind == "" {
			continue
		}
		make, known := types[kind.APIVersion+" "+kind.Kind]
		if !known {
			fail(errors.New("unexpected object"), part)
		}
		if make != nil {
			if err := strict.UnmarshalStrict(part, make()); err != nil {
				fail(err, part)
			}
		}
		count++
	}
	fmt.Println(count, "objects")
}

func fail(err error, part []byte) {
	fmt.Fprintf(os.Stderr, "%v in:\n%s\n", err, part)
	os.Exit(1)
}
