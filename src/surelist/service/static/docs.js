// The API page. Links inside the buttons that open an operation could not be reached by everyone, so there are none;
// headings follow one another without a gap.
const levels = () => {
  for (const each of document.querySelectorAll("#swagger-ui h3.opblock-tag, #swagger-ui section.models > h4, #swagger-ui section.models > h3")) {
    each.setAttribute("aria-level", "2");
  }
};
SwaggerUIBundle({ url: "/api/v1/openapi.json", dom_id: "#swagger-ui", deepLinking: false, onComplete: levels });
