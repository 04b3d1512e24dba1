// Runs the admission policies of manifests/policy in Kubernetes' own plugin, without an API server.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"cel.dev/cel-go/cel"
	"sigs.k8s.io/yaml"
)

const pilotAccount = "system:serviceaccount:glidepod:glidepod-pilot"
const provisionerAccount = "system:serviceaccount:glidepod:glidepod-provisioner"

var passed, failed int

func report(name string, ok bool, detail string) {
	if ok {
		passed++
		fmt.Println("ok:", name)
		return
	}
	failed++
	fmt.Printf("not ok: %s: %s\n", name, detail)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(1)
	}
}

// load reads a manifest strictly and sets the defaults that an API server would.
func load(path string) []runtime.Object {
	text, err := os.ReadFile(path)
	must(err)
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for _, document := range strings.Split(string(text), "\n---\n") {
		json, err := yaml.YAMLToJSONStrict([]byte(document))
		must(err)
		object, _, err := decoder.Decode(json, nil, nil)
		must(err)
		if policy, ok := object.(*admissionregistration.ValidatingAdmissionPolicy); ok {
			equivalent, scope := admissionregistration.Equivalent, admissionregistration.AllScopes
			constraints := policy.Spec.MatchConstraints
			constraints.MatchPolicy = &equivalent
			constraints.NamespaceSelector = &metav1.LabelSelector{}
			constraints.ObjectSelector = &metav1.LabelSelector{}
			for i := range constraints.ResourceRules {
				constraints.ResourceRules[i].Scope = &scope
			}
		}
		objects = append(objects, object)
	}
	return objects
}

// rights has those of a provisioner in the pilots' namespace: nobody else may create pods.
type rights struct{ authorizer.Authorizer }

func (rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == provisionerAccount && a.GetVerb() == "create" && a.GetResource() == "pods" &&
		a.GetSubresource() == "" && a.GetAPIGroup() == "" && a.GetNamespace() == "glidepod" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// newPlugin starts the plugin with the objects in place of a cluster's.
func newPlugin(objects ...runtime.Object) *validating.Plugin {
	plugin, err := validating.NewPlugin(nil)
	must(err)
	client := fake.NewSimpleClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, time.Hour)
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Pod", "ServiceAccount"} {
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	stop := make(chan struct{})
	plugin.SetExternalKubeClientSet(client)
	plugin.SetDynamicClient(fakedynamic.NewSimpleDynamicClient(scheme.Scheme))
	plugin.SetRESTMapper(mapper)
	plugin.SetAuthorizer(rights{})
	plugin.SetDrainedNotification(stop)
	plugin.SetExternalKubeInformerFactory(factory)
	must(plugin.ValidateInitialization())
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	// The plugin tells when it has the policies, not when it has what they are bound to.
	if !plugin.WaitForReady() {
		must(fmt.Errorf("the plugin does not become ready"))
	}
	time.Sleep(1500 * time.Millisecond)
	return plugin
}

func pod() *core.Pod {
	grace, image := int64(30), "registry.example.org/glidepod/pilot"
	return &core.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "pilot", Namespace: "glidepod", Labels: map[string]string{"app.kubernetes.io/name": "glidepod-pilot"},
		},
		Spec: core.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			InitContainers:                []core.Container{{Name: "install", Image: image}},
			Containers: []core.Container{
				{Name: "pilot", Image: image}, {Name: "payload-0", Image: image}, {Name: "payload-1", Image: image},
				{Name: "sidecar", Image: "sidecar"},
			},
			Tolerations: []core.Toleration{{Key: "special", Operator: core.TolerationOpExists}},
		},
	}
}

type request struct {
	before, after *core.Pod
	operation     admission.Operation
	subresource   string
	user          user.DefaultInfo
}

// expect makes one request; denial is a part of the answer, or empty if it must pass.
func expect(plugin *validating.Plugin, name, denial string, change func(r *request)) {
	r := request{before: pod(), after: pod(), operation: admission.Update, user: user.DefaultInfo{
		Name: pilotAccount, Extra: map[string][]string{"authentication.kubernetes.io/pod-name": {"pilot"}},
	}}
	change(&r)
	var before runtime.Object
	if r.operation == admission.Update {
		r.before.Name, r.before.Namespace = r.after.Name, r.after.Namespace
		before = r.before
	}
	err := plugin.Validate(context.Background(), admission.NewAttributesRecord(r.after, before,
		core.SchemeGroupVersion.WithKind("Pod"), r.after.Namespace, r.after.Name,
		schema.GroupVersionResource{Version: "v1", Resource: "pods"}, r.subresource, r.operation,
		&metav1.PatchOptions{}, false, &r.user), admission.NewObjectInterfacesFromScheme(scheme.Scheme))
	answer := fmt.Sprint(err)
	report(name, (err == nil) == (denial == "") && (err == nil || strings.Contains(answer, denial)), answer)
}

func image(container int, name string) func(r *request) {
	return func(r *request) { r.after.Spec.Containers[container].Image = name }
}

func testOwnPod(plugin *validating.Plugin) {
	const images, own, only = "only change the images of payload", "its own pod", "may only change images"
	const metadata, patch = "may not change the metadata", "may only patch or resize a pod"
	number := int64(1)
	with := func(more func(r *request)) func(r *request) {
		return func(r *request) { image(1, "alpine")(r); more(r) }
	}

	expect(plugin, "a pilot changes a payload's image", "", image(1, "alpine"))
	expect(plugin, "and the last one's", "", image(2, "alpine"))
	expect(plugin, "not its own", images, image(0, "alpine"))
	expect(plugin, "not a sidecar's", images, image(3, "alpine"))
	expect(plugin, "not an init container's", only, func(r *request) { r.after.Spec.InitContainers[0].Image = "alpine" })
	expect(plugin, "not tolerations", only, func(r *request) {
		r.after.Spec.Tolerations = append(r.after.Spec.Tolerations, core.Toleration{Key: "other"})
	})
	expect(plugin, "a pilot ends its pod", "", func(r *request) { r.after.Spec.ActiveDeadlineSeconds = &number })
	expect(plugin, "not another pod", own, func(r *request) {
		r.after.Name = "neighbour"
		r.after.Spec.ActiveDeadlineSeconds = &number
	})
	expect(plugin, "not the grace period", only, func(r *request) { r.after.Spec.TerminationGracePeriodSeconds = &number })
	expect(plugin, "not a gate", only, func(r *request) { r.before.Spec.SchedulingGates = []core.PodSchedulingGate{{Name: "x/y"}} })
	expect(plugin, "not where it may run", only, func(r *request) { r.after.Spec.NodeSelector = map[string]string{"x": "y"} })
	expect(plugin, "not how its image is pulled", "only change image and size", func(r *request) {
		r.after.Spec.Containers[1].ImagePullPolicy = core.PullNever
	})
	expect(plugin, "not a container more", "only change image and size", func(r *request) {
		r.after.Spec.Containers = append(r.after.Spec.Containers, core.Container{Name: "payload-2", Image: "alpine"})
	})
	expect(plugin, "not a label", metadata, func(r *request) { r.after.Labels["x"] = "y" })
	expect(plugin, "nor without labels", metadata, func(r *request) { r.after.Labels = nil })
	const wanted, pulled, drained = "glidepod.io/wanted-images", "glidepod.io/pulled-images", "glidepod.io/drained"
	const annotation = "may only change the annotation"
	annotations := func(before, after map[string]string) func(r *request) {
		return func(r *request) { r.before.Annotations, r.after.Annotations = before, after }
	}
	told := map[string]string{pulled: "[]", "x": "y"}
	expect(plugin, "a pilot says which images it wants", "", annotations(nil, map[string]string{wanted: "[]"}))
	expect(plugin, "beside what stands there", "", annotations(told, map[string]string{pulled: "[]", "x": "y", wanted: "[1]"}))
	expect(plugin, "and takes it back", "", annotations(map[string]string{wanted: "[]"}, nil))
	expect(plugin, "not that in an endless text", "so many images", annotations(nil, map[string]string{wanted: strings.Repeat("x", 16385)}))
	expect(plugin, "not what became of them", annotation, annotations(nil, map[string]string{pulled: "[]"}))
	expect(plugin, "nor otherwise", annotation, annotations(told, map[string]string{pulled: "[1]", "x": "y"}))
	expect(plugin, "nor is it removed", annotation, annotations(told, map[string]string{"x": "y"}))
	expect(plugin, "not that it is drained", annotation, annotations(nil, map[string]string{drained: "why"}))
	expect(plugin, "nor that it is not", annotation, annotations(map[string]string{drained: "why"}, nil))
	expect(plugin, "not another annotation", annotation, annotations(nil, map[string]string{"x": "y"}))
	expect(plugin, "nor is one removed", annotation, annotations(told, nil))
	expect(plugin, "not a finalizer", metadata, func(r *request) { r.after.Finalizers = []string{"x/y"} })
	expect(plugin, "not an owner", metadata, func(r *request) { r.after.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} })
	expect(plugin, "not another pod", own, with(func(r *request) { r.after.Name = "neighbour" }))
	expect(plugin, "not in another namespace", own, with(func(r *request) { r.after.Namespace = "other" }))
	expect(plugin, "not with a token of no pod", own, with(func(r *request) { r.user.Extra = nil }))
	expect(plugin, "not create a pod", patch, func(r *request) { r.operation = admission.Create })
	expect(plugin, "not the status", patch, func(r *request) { r.subresource = "status" })
	expect(plugin, "not an eviction", patch, func(r *request) { r.subresource = "eviction" })
	expect(plugin, "others are not concerned", "", func(r *request) {
		image(0, "alpine")(r)
		r.user = user.DefaultInfo{Name: "admin"}
	})
}

// beside gives both pods two sidecars: a payload container, and what a mesh adds.
func beside(change func(r *request)) func(r *request) {
	always, image := core.ContainerRestartPolicyAlways, "registry.example.org/glidepod/pilot"
	return func(r *request) {
		for _, p := range []*core.Pod{r.before, r.after} {
			p.Spec.InitContainers = append(p.Spec.InitContainers, core.Container{Name: "payload-2", Image: image, RestartPolicy: &always},
				core.Container{Name: "mesh", Image: image, RestartPolicy: &always})
		}
		change(r)
	}
}

func testSidecars(plugin *validating.Plugin) {
	const only = "may only change images and sizes of payload containers"
	to := func(container int, name string) func(r *request) {
		return beside(func(r *request) { r.after.Spec.InitContainers[container].Image = name })
	}
	expect(plugin, "a pilot changes the image of a payload container that is a sidecar", "", to(1, "alpine"))
	expect(plugin, "and that of another container beside it", "", beside(image(1, "alpine")))
	expect(plugin, "not that of another sidecar", only, to(2, "alpine"))
	expect(plugin, "nor of what ends before the pilot begins", only, to(0, "alpine"))
	expect(plugin, "whatever its name is", only, beside(func(r *request) {
		r.before.Spec.InitContainers[1].RestartPolicy, r.after.Spec.InitContainers[1].RestartPolicy = nil, nil
		r.after.Spec.InitContainers[1].Image = "alpine"
	}))
	expect(plugin, "not what a sidecar runs", only, beside(func(r *request) {
		r.after.Spec.InitContainers[1].Command = []string{"sh"}
	}))
	expect(plugin, "not a sidecar more", only, beside(func(r *request) {
		r.after.Spec.InitContainers = append(r.after.Spec.InitContainers, r.after.Spec.InitContainers[1])
	}))
	sized := func(change func(r *request)) func(r *request) {
		return beside(func(r *request) {
			r.subresource = "resize"
			for _, p := range []*core.Pod{r.before, r.after} {
				size(p.Spec.Containers, 1, "2", "4Gi", "4", "8Gi")
				size(p.Spec.Containers, 2, "0", "0", "1", "1Gi")
				size(p.Spec.InitContainers, 1, "2", "4Gi", "4", "7Gi")
				p.Annotations = map[string]string{
					"glidepod.io/requests.cpu": "4", "glidepod.io/requests.memory": "8Gi",
					"glidepod.io/limits.cpu": "9", "glidepod.io/limits.memory": "16Gi",
				}
			}
			change(r)
		})
	}
	expect(plugin, "a pilot resizes a sidecar", "", sized(func(r *request) { size(r.after.Spec.InitContainers, 1, "1", "1Gi", "1", "1Gi") }))
	expect(plugin, "not beyond what all of them may request", "may not request more", sized(func(r *request) {
		size(r.after.Spec.InitContainers, 1, "2001m", "4Gi", "4", "7Gi")
	}))
	expect(plugin, "nor a container, beyond what sidecars leave", "may not request more", sized(func(r *request) {
		size(r.after.Spec.Containers, 1, "2", "4097Mi", "4", "8Gi")
	}))
	expect(plugin, "nor with higher limits", "may not have higher limits", sized(func(r *request) {
		size(r.after.Spec.InitContainers, 1, "2", "4Gi", "4", "8Gi")
	}))
	expect(plugin, "not a mesh's", only, sized(func(r *request) { size(r.after.Spec.InitContainers, 2, "1", "1Mi", "1", "1Mi") }))
}

// testAccounts has patches by others than the account glidepod-pilot.
func testAccounts(plugin *validating.Plugin) {
	as := func(name string, change func(r *request)) func(r *request) {
		return func(r *request) { change(r); r.user.Name = name }
	}
	neighbour := func(r *request) { image(1, "alpine")(r); r.after.Name = "neighbour" }
	label := func(r *request) { r.after.Labels["x"] = "y" }
	const renamed = "system:serviceaccount:glidepod:renamed"
	expect(plugin, "a pilot of another account changes a payload's image", "", as(renamed, image(1, "alpine")))
	expect(plugin, "not its own", "only change the images of payload", as(renamed, image(0, "alpine")))
	expect(plugin, "not another pod", "its own pod", as(renamed, neighbour))
	expect(plugin, "not a label", "may not change the metadata", as(renamed, label))
	expect(plugin, "nor creates one", "may only patch or resize a pod", as(renamed, func(r *request) { r.operation = admission.Create }))
	expect(plugin, "nor of one whose name ends alike", "its own pod", as("system:serviceaccount:glidepod:not-glidepod-pilot", neighbour))
	expect(plugin, "not a pilot of another namespace", "its own pod", as("system:serviceaccount:other:glidepod-pilot", image(1, "alpine")))
	expect(plugin, "a provisioner beside them, which may create pods, is not concerned", "", as(provisionerAccount, func(r *request) {
		r.after.Annotations = map[string]string{"glidepod.io/pulled-images": "[]"}
		r.after.Name = "neighbour"
	}))
	expect(plugin, "nor one of another namespace", "", as("system:serviceaccount:glidepod-system:glidepod-provisioner", label))
	expect(plugin, "nor are Kubernetes' controllers", "", as("system:serviceaccount:kube-system:node-controller", label))
	expect(plugin, "nor nodes", "", as("system:node:one", label))
	expect(plugin, "nor a token of no pod", "", func(r *request) {
		label(r)
		r.user = user.DefaultInfo{Name: "system:serviceaccount:glidepod:somebody"}
	})
	expect(plugin, "nor accounts of namespaces without pilots", "", func(r *request) {
		neighbour(r)
		r.after.Namespace = "shop"
		r.user.Name = "system:serviceaccount:shop:operator"
	})
}

// size gives a container of both pods, or of the new one, its requests and limits: CPU and memory of each.
func size(containers []core.Container, container int, quantities ...string) {
	list := func(cpu, memory string) core.ResourceList {
		return core.ResourceList{core.ResourceCPU: resource.MustParse(cpu), core.ResourceMemory: resource.MustParse(memory)}
	}
	containers[container].Resources = core.ResourceRequirements{
		Requests: list(quantities[0], quantities[1]), Limits: list(quantities[2], quantities[3]),
	}
}

// testResize has a pod of two payload containers that request 4 CPUs and 8 GiB together, and may have twice that.
func testResize(plugin *validating.Plugin) {
	const payloads, requests, limits = "only resize payload", "may not request more", "may not have higher limits"
	made := func(change func(r *request)) func(r *request) {
		return func(r *request) {
			r.subresource = "resize"
			for _, p := range []*core.Pod{r.before, r.after} {
				size(p.Spec.Containers, 0, "100m", "256Mi", "1", "512Mi")
				size(p.Spec.Containers, 1, "2", "4Gi", "4", "8Gi")
				size(p.Spec.Containers, 2, "2", "4Gi", "4", "8Gi")
				p.Annotations = map[string]string{
					"glidepod.io/requests.cpu": "4", "glidepod.io/requests.memory": "8Gi",
					"glidepod.io/limits.cpu": "8", "glidepod.io/limits.memory": "16Gi",
				}
			}
			change(r)
		}
	}
	to := func(container int, quantities ...string) func(r *request) {
		return made(func(r *request) { size(r.after.Spec.Containers, container, quantities...) })
	}
	expect(plugin, "a pilot makes a payload container smaller", "", to(1, "500m", "1Gi", "500m", "1Gi"))
	expect(plugin, "and one larger, of what another one gives", "", made(func(r *request) {
		size(r.after.Spec.Containers, 1, "3", "7Gi", "3", "7Gi")
		size(r.after.Spec.Containers, 2, "1000m", "1024Mi", "1", "1Gi")
	}))
	expect(plugin, "and later, of what was given back", "", made(func(r *request) {
		size(r.before.Spec.Containers, 1, "1", "1Gi", "1", "1Gi")
		size(r.before.Spec.Containers, 2, "0", "0", "100m", "64Mi")
		size(r.after.Spec.Containers, 1, "4", "8Gi", "4", "8Gi")
		size(r.after.Spec.Containers, 2, "0", "0", "100m", "64Mi")
	}))
	expect(plugin, "not itself", payloads, to(0, "200m", "256Mi", "1", "512Mi"))
	expect(plugin, "not a sidecar", payloads, to(3, "1m", "1Mi", "1m", "1Mi"))
	whole := core.ResourceRequirements{Limits: core.ResourceList{core.ResourceCPU: resource.MustParse("64")}}
	expect(plugin, "not the whole pod", "may only change images", made(func(r *request) { r.after.Spec.Resources = &whole }))
	expect(plugin, "nor back to none", "may only change images", made(func(r *request) { r.before.Spec.Resources = &whole }))
	expect(plugin, "of a pod with a size of its own, containers' sizes", "", made(func(r *request) {
		size(r.after.Spec.Containers, 1, "1", "1Gi", "1", "1Gi")
		r.before.Spec.Resources, r.after.Spec.Resources = &whole, &whole
	}))
	expect(plugin, "not with more CPU requested", requests, to(1, "2001m", "4Gi", "4", "8Gi"))
	expect(plugin, "not with more memory requested", requests, to(1, "2", "4097Mi", "4", "8Gi"))
	expect(plugin, "not with a higher limit of CPU", limits, to(1, "2", "4Gi", "4100m", "8Gi"))
	expect(plugin, "not with a higher limit of memory", limits, to(2, "2", "4Gi", "4", "8193Mi"))
	expect(plugin, "not without a limit", limits, made(func(r *request) {
		delete(r.after.Spec.Containers[1].Resources.Limits, core.ResourceMemory)
	}))
	for _, annotation := range []string{"requests.cpu", "requests.memory", "limits.cpu", "limits.memory"} {
		denial := requests
		if strings.HasPrefix(annotation, "limits") {
			denial = limits
		}
		expect(plugin, "not where nobody says "+annotation, denial, made(func(r *request) {
			size(r.after.Spec.Containers, 1, "1", "1Gi", "1", "1Gi")
			for _, p := range []*core.Pod{r.before, r.after} {
				delete(p.Annotations, "glidepod.io/"+annotation)
			}
		}))
	}
	expect(plugin, "not by what it says itself", "may only change the annotation", made(func(r *request) {
		size(r.after.Spec.Containers, 1, "3", "4Gi", "4", "8Gi")
		r.after.Annotations["glidepod.io/requests.cpu"] = "5"
	}))
	expect(plugin, "not another pod's", "its own pod", made(func(r *request) {
		size(r.after.Spec.Containers, 1, "1", "1Gi", "1", "1Gi")
		r.after.Name = "neighbour"
	}))
	expect(plugin, "an image beside sizes that nobody says is no matter", "", made(func(r *request) {
		r.subresource = ""
		r.before.Annotations, r.after.Annotations = nil, nil
		image(1, "alpine")(r)
	}))
}

func testRegistries(plugin *validating.Plugin) {
	const denied = "images from here are not allowed: "
	for _, row := range []struct{ image, denial string }{
		{"alpine", ""},
		{"alpine:3", ""},
		{"alpine@sha256:0123", ""},
		{"docker.io/library/alpine", ""},
		{"user/alpine", denied + "docker.io/user/alpine"},
		{"registry.example.org/physics:1", ""},
		{"registry.example.org/physics/x:nonce@sha256:0123", ""},
		{"registry.example.org/physics2/x", denied},
		{"registry.example.org/x", denied},
		{"localhost:5000/x", ""},
		{"localhost/x", denied + "localhost/x"},
		{"registry.example.org/glidepod/pilot", ""},
		{"registry.example.org/glidepod/pilot:nonce@sha256:0123", ""},
		{"registry.example.org/glidepod/pilot2", denied},
		{"docker.io/library/sidecar:2", ""},
	} {
		expect(plugin, "allow-list: "+row.image, row.denial, image(1, row.image))
	}
	expect(plugin, "allow-list, of a sidecar", denied+"registry.example.org/x", beside(func(r *request) {
		r.after.Spec.InitContainers[1].Image = "registry.example.org/x"
	}))
	expect(plugin, "allow-list, by another account", denied, func(r *request) {
		image(1, "registry.example.org/x")(r)
		r.user.Name = "system:serviceaccount:glidepod:renamed"
	})
}

// testPullers makes pods as the provisioner does.
func testPullers(plugin *validating.Plugin) {
	puller := func(image string) func(r *request) {
		return func(r *request) {
			r.operation = admission.Create
			r.user = user.DefaultInfo{Name: "system:serviceaccount:glidepod:glidepod-provisioner"}
			r.after.Labels["app.kubernetes.io/name"] = "glidepod-puller"
			r.after.Spec.Containers = []core.Container{{Name: "pull", Image: image}}
		}
	}
	expect(plugin, "a puller of what a pilot may run", "", puller("registry.example.org/physics/x:1"))
	expect(plugin, "not of anything else", "images from here are not allowed: registry.example.org/x:1", puller("registry.example.org/x:1"))
	expect(plugin, "other pods of the provisioner are not concerned", "", func(r *request) {
		puller("registry.example.org/x:1")(r)
		r.after.Labels["app.kubernetes.io/name"] = "other"
	})
	pilot := func(images ...string) func(r *request) {
		return func(r *request) {
			puller("")(r)
			r.after = pod()
			for i, image := range images {
				r.after.Spec.Containers[i].Image = image
			}
		}
	}
	expect(plugin, "a new pilot", "", pilot())
	expect(plugin, "of any image, which its payloads start on", "", pilot("registry.example.org/x:1", "registry.example.org/x:1", "registry.example.org/x:1"))
	own := "registry.example.org/glidepod/pilot"
	expect(plugin, "born on what it may run", "", pilot(own, own, "registry.example.org/physics/x:1"))
	expect(plugin, "not on anything else", "images from here are not allowed: registry.example.org/x:1", pilot(own, own, "registry.example.org/x:1"))
}

// testOldest compiles every expression as the oldest supported API server would.
func testOldest(objects []runtime.Object) {
	options := []cel.EnvOption{}
	for _, name := range []string{"object", "oldObject", "request", "params", "variables", "authorizer"} {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 30)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options,
	})
	must(err)
	compile := func(name, expression string) {
		_, issues := set.NewExpressionsEnv().Compile(expression)
		report("compiles in 1.30: "+name, issues.Err() == nil, fmt.Sprint(issues.Err()))
	}
	for _, object := range objects {
		policy, ok := object.(*admissionregistration.ValidatingAdmissionPolicy)
		if !ok {
			continue
		}
		for _, condition := range policy.Spec.MatchConditions {
			compile(policy.Name+", "+condition.Name, condition.Expression)
		}
		for _, variable := range policy.Spec.Variables {
			compile(policy.Name+", "+variable.Name, variable.Expression)
		}
		for i, validation := range policy.Spec.Validations {
			compile(fmt.Sprintf("%s, validation %d", policy.Name, i+1), validation.Expression)
			if validation.MessageExpression != "" {
				compile(fmt.Sprintf("%s, message %d", policy.Name, i+1), validation.MessageExpression)
			}
		}
	}
}

func main() {
	folder := os.Args[1]
	objects := append(load(filepath.Join(folder, "own-pod.yaml")), load(filepath.Join(folder, "registries.yaml"))...)
	testOldest(objects)
	for _, name := range []string{"glidepod", "other", "shop"} {
		objects = append(objects, &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, name := range []string{"glidepod", "other"} {
		named := metav1.ObjectMeta{Name: "glidepod-pilot", Namespace: name}
		objects = append(objects, &core.ServiceAccount{ObjectMeta: named})
	}
	registries := func(data map[string]string) runtime.Object {
		name := metav1.ObjectMeta{Name: "glidepod-registries", Namespace: "glidepod"}
		return &core.ConfigMap{ObjectMeta: name, Data: data}
	}
	own := newPlugin(objects...)
	testOwnPod(own)
	testAccounts(own)
	testResize(own)
	testSidecars(own)
	limited := newPlugin(append(objects, registries(map[string]string{
		"allowed": "docker.io/library\n registry.example.org/physics \n\nlocalhost:5000\n",
	}))...)
	testRegistries(limited)
	testPullers(limited)
	expect(newPlugin(append(objects, registries(nil))...), "an empty allow-list allows nothing", "not allowed", image(1, "alpine"))
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
